import { z } from 'zod';

/**
 * The id of a record, which is a UUIDv7. Upper and lower case are accepted, and answers have lower case. Other
 * versions, braces and `urn:` are refused.
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

/** The id of a record of the caller, for examples. */
export const exampleId = '0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44';

export const timeOfId = (id: string): Date => new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16));

/**
 * The smallest id of a moment. No UUIDv7 of that moment is smaller, and every UUIDv7 of an earlier moment is smaller.
 */
export function firstIdOf(moment: Date): string {
  const digits = Math.min(Math.max(moment.getTime(), 0), 0xffffffffffff).toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}

/** A time by RFC 3339 in UTC with milliseconds and `Z`. All times in answers have this form. */
export const timestampSchema = z.iso.datetime({ precision: 3 });

/** How full something with a limit of storage is, from the emptiest state to the fullest. */
export const storageStateSchema = z.enum(['ok', 'nearly_full', 'full', 'closed']);
export type StorageState = z.infer<typeof storageStateSchema>;

export const modeSchema = z.enum(['live', 'sandbox']);
export type Mode = z.infer<typeof modeSchema>;

/**
 * A text of the caller in one line, without ASCII control characters and without lone surrogates. Its length counts
 * UTF-16 units.
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

/** A text that may be empty and may contain line breaks and tabs. */
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

/** Names and values of the caller's own. They are stored with a resource, and Drydock does not interpret them. */
export const metadataSchema = z.record(z.string(), z.string()).meta({ id: 'Metadata' });
export type Metadata = Readonly<Record<string, string>>;

/** A change of metadata. A text sets a value, null and '' remove it. Names that are not sent keep their values. */
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
  // The limit is a string, exactly as it was sent. The pager parses it, so that all invalid limits get the same code.
  limit: z
    .string()
    .optional()
    .meta({ type: 'integer', minimum: 1, default: 50, description: 'Items a page: from 1; above 100 counts as 100' }),
});

/** Tells whether and where a list goes on after a page. `next_cursor` is opaque and valid for 72 hours. */
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

export const createdFilter = {
  created_after: momentSchema.meta({ description: 'Only what was created at this moment or later, as RFC 3339' }),
  created_before: momentSchema.meta({ description: 'Only what was created before this moment, as RFC 3339' }),
};

/** Limits a list to some values of one field. The values are separated by commas. A repeated value counts once. */
export const anyOf = <const Value extends string>(values: z.ZodEnum<Readonly<Record<Value, Value>>>, what: string) =>
  z
    .string()
    .transform((list, context) => {
      const parsed = z.array(values).safeParse(list.split(','));
      if (parsed.success) return [...new Set(parsed.data)];
      context.addIssue({
        code: 'custom',
        message: `must be some of ${values.options.join(', ')}, with commas between them`,
      });
      return z.NEVER;
    })
    .optional()
    .meta({ description: `Only ${what}: some of ${values.options.join(', ')}, with commas between them` });

/** Limits a list to items that contain a text. `where` names the fields that are searched. */
export const textFilter = (where: string) =>
  text(100)
    .optional()
    .meta({ description: `Only what has this text in ${where}, in upper or lower case` });

/** Limits a list to items whose metadata has the given value under the given name. */
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

/** The types of OpenSSH's public keys, as OpenSSH writes them. */
const sshKeyTypes = /^(?:ssh-rsa|(?:sk-)?(?:ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521))(?:@openssh\.com)?)$/;

/** Whether the text is `TYPE DATA [COMMENT]`, and the data is a key of that type (RFC 4253, 6.6). */
function isSshKey(line: string): boolean {
  const [type = '', data = ''] = line.split(' ');
  const bytes = Buffer.from(data, 'base64');
  return (
    sshKeyTypes.test(type) &&
    bytes.toString('base64') === data &&
    bytes.length > type.length + 8 &&
    bytes.readUInt32BE(0) === type.length &&
    bytes.toString('latin1', 4, 4 + type.length) === type
  );
}

/** A line of `authorized_keys` without options, such as the content of `id_ed25519.pub`. */
export const sshKeySchema = text(2_000).refine(
  isSshKey,
  'must be the line of a public key of OpenSSH, such as id_ed25519.pub',
);
