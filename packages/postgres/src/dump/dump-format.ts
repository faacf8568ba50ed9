import { z } from 'zod';
import { TransferError } from '../session/transfer-error';

/** A file of a dump. `content` can be read once. Contents of different sections may be read at the same time. */
export interface Section {
  path: string;
  content: AsyncIterable<Buffer>;
}

export const sectionPaths = {
  tables: 'tables.json',
  schemaPre: 'schema-pre.sql',
  schemaPost: 'schema-post.sql',
  properties: 'database.json',
  sequences: 'sequences.json',
  largeObjects: 'large-objects.bin',
  manifest: 'manifest.json',
} as const;

export const dataPath = (index: number): string => `data/${index}.copy`;

/** Reads a text section. Throws `dump_malformed` if it is longer than `bytesMax` or not UTF-8. */
export async function readText(section: Section, bytesMax: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of section.content) {
    bytes += part.length;
    if (bytes > bytesMax) throw new TransferError('dump_malformed', `${section.path} is longer than ${bytesMax} bytes`);
    parts.push(part);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
  } catch (error) {
    throw new TransferError('dump_malformed', `${section.path} is not UTF-8`, { cause: error });
  }
}

/** The size limit of a text section in bytes. A load holds the whole section in memory. */
export const textBytesMax = 64 * 2 ** 20;

/** A section of text. Reading it throws a permanent `dump_failed` if it is too long for a load. */
export function textSection(path: string, read: () => Promise<string>): Section {
  async function* content(): AsyncGenerator<Buffer> {
    const text = Buffer.from(await read());
    if (text.length > textBytesMax) {
      const mb = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`;
      const message =
        `the definitions of the database's objects are ${mb(text.length)} of text, ` +
        `and ${mb(textBytesMax)} can be restored`;
      throw new TransferError('dump_failed', message, { object: path, isPermanent: true });
    }
    yield text;
  }
  return { path, content: content() };
}

/** Reads sections and accepts only the order that the caller expects. */
export class SectionReader {
  private readonly iterator: AsyncIterator<Section>;

  constructor(sections: AsyncIterable<Section>) {
    this.iterator = sections[Symbol.asyncIterator]();
  }

  /** Returns the next section. Throws `dump_malformed` if there is none or its path differs. */
  async expect(path: string): Promise<Section> {
    const next = await this.iterator.next();
    if (next.done === true) throw new TransferError('dump_malformed', `${path} is missing`);
    if (next.value.path !== path)
      throw new TransferError('dump_malformed', `expected ${path}, found ${next.value.path}`);
    return next.value;
  }

  async expectEnd(): Promise<void> {
    const next = await this.iterator.next();
    if (next.done !== true) throw new TransferError('dump_malformed', `unexpected ${next.value.path}`);
  }

  /** Lets the source of the sections clean up, and ignores errors of the clean-up. */
  async close(): Promise<void> {
    await Promise.resolve(this.iterator.return?.()).catch(() => undefined);
  }
}

const identifier = z
  .string()
  .min(1)
  .max(63 * 4);

const tableSchema = z.strictObject({
  schema: identifier,
  name: identifier,
  columns: z.array(identifier).max(1600),
  /** `text` if binary values would contain oids of the source server (see list-tables.ts). */
  format: z.enum(['binary', 'text']),
});

/** The first section of a dump. The data section of its n-th table is `data/<n>.copy`, counted from 0. */
export const tablesSchema = z.strictObject({
  /** Version 2 added database.json. Version 3 added the owners of objects and of large objects. */
  format_version: z.union([z.literal(1), z.literal(2), z.literal(3)]),
  server_version_num: z.int(),
  encoding: z.string(),
  /** Roles in row security policies. A load asks its caller to create them. Older dumps lack this list. */
  policy_roles: z.array(identifier).max(100_000).default([]),
  tables: z.array(tableSchema).max(1_000_000),
});

export const sequencesSchema = z.array(
  z.strictObject({
    schema: identifier,
    name: identifier,
    last_value: z.string().regex(/^-?\d{1,19}$/),
    is_called: z.boolean(),
  }),
);

const sum = z.string().regex(/^-?\d{1,40}$/);

/**
 * Sums of the hashes of a table's rows (see `hashComputed`). A load computes the generated columns again, and compares
 * these sums. The sums of partitions add up to the sums of their table.
 */
export const computedSchema = z.strictObject({
  written: sum,
  columns: z.array(z.strictObject({ name: identifier, hash: sum })).max(1600),
});
export type ComputedColumns = z.infer<typeof computedSchema>;

/**
 * The last section of a dump. It lists the number of rows and bytes of each table, so that a load can verify itself.
 */
export const manifestSchema = tablesSchema.extend({
  tables: z
    .array(
      tableSchema.extend({
        rows: z.int().nonnegative(),
        bytes: z.int().nonnegative(),
        computed: computedSchema.optional(),
      }),
    )
    .max(1_000_000),
  large_objects: z.int().nonnegative(),
});

export type TableEntry = z.infer<typeof tableSchema>;
export type TablesFile = z.infer<typeof tablesSchema>;
export type SequenceEntry = z.infer<typeof sequencesSchema>[number];
export type DumpManifest = z.infer<typeof manifestSchema>;

/** Reads a JSON section. Throws `dump_malformed` if it does not match the schema. */
export async function readJson<T>(section: Section, schema: z.ZodType<T>): Promise<T> {
  const text = await readText(section, textBytesMax);
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new TransferError('dump_malformed', `${section.path} has not the expected shape`, { cause: error });
  }
}
