import { z } from 'zod';
import { TransferError } from '../session/transfer-error';
import { readText, type Section, textBytesMax } from './section';

const identifier = z
  .string()
  .min(1)
  .max(63 * 4);

const tableSchema = z.strictObject({
  schema: identifier,
  name: identifier,
  columns: z.array(identifier).max(1600),
  /** `text` if binary values would contain type numbers of the source server (see list-tables). */
  format: z.enum(['binary', 'text']),
});

/** The first section of a dump. It describes the data sections by position. */
export const tablesSchema = z.strictObject({
  /** Version 2 added database.json. Version 3 added the owners of objects and large objects. */
  format_version: z.union([z.literal(1), z.literal(2), z.literal(3)]),
  server_version_num: z.int(),
  encoding: z.string(),
  /** Roles in row security policies. They must exist before the schema is loaded. Older dumps lack this list. */
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
 * Sums of a table's hashes, to compare generated columns after a load, which computes them again. The sums of
 * partitions add up to the sum of their table.
 */
export const computedSchema = z.strictObject({
  written: sum,
  columns: z.array(z.strictObject({ name: identifier, hash: sum })).max(1600),
});
export type ComputedColumns = z.infer<typeof computedSchema>;

/** The last section of a dump. It lists the tables with the written rows, so that a load can verify itself. */
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
