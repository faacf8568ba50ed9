import { z } from 'zod';
import { metadataNameSchema, metadataValueSchema, text } from './values';

const momentSchema = z.iso
  .datetime({ offset: true })
  .transform((moment) => new Date(moment))
  .refine((moment) => moment.getTime() >= 0, 'must not be before 1970')
  .optional();

/** Limits a list to items that were created between two moments. */
export const createdFilter = {
  created_after: momentSchema.meta({ description: 'Only what was created at this moment or later, as RFC 3339' }),
  created_before: momentSchema.meta({ description: 'Only what was created before this moment, as RFC 3339' }),
};

/** Narrows a list to some values of one field: names from `values`, separated by commas. */
export const anyOf = <const Value extends string>(values: z.ZodEnum<Readonly<Record<Value, Value>>>, what: string) =>
  z
    .string()
    .transform((list, context) => {
      const parsed = z.array(values).safeParse(list.split(','));
      if (parsed.success) return parsed.data;
      context.addIssue({
        code: 'custom',
        message: `must be some of ${values.options.join(', ')}, with commas between them`,
      });
      return z.NEVER;
    })
    .optional()
    .meta({ description: `Only ${what}: some of ${values.options.join(', ')}, with commas between them` });

/** Narrows a list to items with a text in their name. `where` names the fields that are searched. */
export const textFilter = (where: string) =>
  text(100)
    .optional()
    .meta({ description: `Only what has this text in ${where}, in upper or lower case` });

/** Narrows a list to items with a value in their metadata. */
export const metadataFilter = z
  .string()
  .transform((pair, context) => {
    const end = pair.indexOf('=');
    const parsed = z
      .object({ name: metadataNameSchema, value: metadataValueSchema.min(1) })
      .safeParse({ name: pair.slice(0, Math.max(end, 0)), value: pair.slice(end + 1) });
    if (parsed.success) return parsed.data;
    context.addIssue({ code: 'custom', message: 'must be NAME=VALUE, as metadata may be' });
    return z.NEVER;
  })
  .optional()
  .meta({ description: 'Only what has this in its metadata: NAME=VALUE, where the first = ends the name' });

export interface CreatedBetween {
  created_after?: Date | undefined;
  created_before?: Date | undefined;
}
