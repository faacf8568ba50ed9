import { z } from 'zod';

/**
 * A record's id: a UUIDv7. Upper and lower case are accepted, and lower case is answered. Other versions, braces and
 * urn: are refused.
 */
export const idSchema = z
  .string()
  .regex(
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i,
    'must be an id as answers give it: a UUID of version 7',
  )
  .transform((id) => id.toLowerCase())
  .meta({ id: 'Uuid' });

/** The schema of an id in an answer. */
export const uuidSchema = z.uuid().meta({ format: 'uuid' });

/** Used in examples for an id of the caller's own. */
export const exampleId = '0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44';

/** When a UUIDv7 was made. */
export const timeOfId = (id: string): Date => new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16));

/** An id that is not greater than any UUIDv7 made at that moment, and greater than all older ones. */
export function firstIdOf(moment: Date): string {
  const digits = Math.min(Math.max(moment.getTime(), 0), 0xffffffffffff).toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}

/** RFC 3339 in UTC with milliseconds and `Z`. All our timestamps have this form. */
export const timestampSchema = z.iso.datetime({ precision: 3 });

export const modeSchema = z.enum(['live', 'sandbox']);
export type Mode = z.infer<typeof modeSchema>;

/**
 * Text as a customer writes it: without control characters (a NUL cannot be stored), and without half a surrogate pair.
 * Lengths count UTF-16 units.
 */
export const text = (maxLength: number) =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .refine(
      // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
      (value) => value.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(value),
      'must not contain control characters',
    );

/** A text that may contain line breaks and tabs, and may be ''. */
export const paragraphs = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .refine(
      (value) => value.isWellFormed() && !/(?![\t\n\r])\p{Cc}/u.test(value),
      'must not contain control characters',
    );

export const metadataKeysMax = 20;
const metadataNameSchema = text(40);
const metadataValueSchema = paragraphs(500);

/** The caller's own names and values. They are kept with a thing, and Drydock does not read them. */
export const metadataSchema = z.record(z.string(), z.string()).meta({ id: 'Metadata' });
export type Metadata = Readonly<Record<string, string>>;

/** A change of metadata: a value is set, null and '' remove it, and names that are not given stay. */
export const metadataChangeSchema = z
  .record(metadataNameSchema, metadataValueSchema.nullable())
  .refine(
    (change) => Object.keys(change).length <= 2 * metadataKeysMax,
    'must not name more keys than can be set and removed',
  )
  .meta({ id: 'MetadataChange' });
export type MetadataChange = Readonly<Record<string, string | null>>;

export const pageQuerySchema = z.strictObject({
  cursor: z.string().optional().meta({ description: 'page.next_cursor of the page before' }),
  // The limit as a string, exactly as it was sent. The pager reads it, so that every mistake in it has the same code.
  limit: z
    .string()
    .optional()
    .meta({ type: 'integer', minimum: 1, default: 50, description: 'Items a page: from 1; above 100 counts as 100' }),
});

/** Where a list continues. `next_cursor` is opaque, and is valid for 72 hours. */
export const pageMetaSchema = z
  .strictObject({
    next_cursor: z
      .string()
      .nullable()
      .describe('Send it as cursor for the next page; null on the last one. It is opaque and lasts 72 hours.'),
    has_more: z.boolean().describe('Whether there is a next page.'),
    limit: z.int().min(1).max(100).describe('Items that a page holds at most.'),
  })
  .meta({ id: 'PageMeta' });
export type PageMeta = z.infer<typeof pageMetaSchema>;

/** The schema of a page, named after its item: a page of `Site` is a `SitePage`. Throws for an item without a name. */
export const pageOf = <Item extends z.ZodType>(item: Item) => {
  const name = item.meta()?.id;
  if (name === undefined) throw new Error('the items of a page have no name');
  return z
    .strictObject({
      data: z.array(item).describe('Items of this page.'),
      page: pageMetaSchema.describe('Where the list goes on.'),
    })
    .meta({ id: `${name}Page` });
};

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
