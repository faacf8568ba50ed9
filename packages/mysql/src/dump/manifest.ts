import { z } from 'zod';

/** The form of a column's values in a statement (see load/insert-rows.ts). */
export const columnKind = z.enum(['number', 'quoted', 'json', 'bytes']);
export type ColumnKind = z.infer<typeof columnKind>;

const name = z.string();
const table = z.object({
  schema: name,
  name,
  engine: z.string(),
  /** The columns whose values are written. Generated columns are left out. */
  columns: z.array(z.object({ name, kind: columnKind })),
  definition: z.string(),
});
export type DumpedTable = z.infer<typeof table>;

/**
 * A routine, trigger, event or view, with the settings of the session that created it. `definition` has one character
 * for each byte.
 */
const program = z.object({
  kind: z.enum(['FUNCTION', 'PROCEDURE', 'PACKAGE', 'PACKAGE BODY', 'TRIGGER', 'EVENT', 'VIEW']),
  schema: name,
  name,
  sqlMode: z.string(),
  charset: z.string(),
  collation: z.string(),
  timeZone: z.string().nullable(),
  definition: z.string(),
});
export type DumpedProgram = z.infer<typeof program>;

const account = z.object({
  user: z.string(),
  host: z.string(),
  isRole: z.boolean(),
  isLocked: z.boolean(),
  needsTls: z.boolean(),
  plugin: z.string(),
  /** The password's verifier as hex, because a verifier of MySQL contains arbitrary bytes. */
  verifier: z.string(),
});
export type DumpedAccount = z.infer<typeof account>;

/** Rights of an account on one object. Only rights on a table have `columns`. */
const grant = z.object({
  user: z.string(),
  host: z.string(),
  on: z.enum(['schema', 'table', 'FUNCTION', 'PROCEDURE', 'PACKAGE', 'PACKAGE BODY', 'role']),
  /** The schema as the server's table of rights names it, perhaps as a pattern. With `on: 'role'`, the role's name. */
  schema: z.string(),
  name: z.string().nullable(),
  columns: z.array(z.object({ name, privileges: z.array(z.string()) })),
  privileges: z.array(z.string()),
  isGrantable: z.boolean(),
});
export type DumpedGrant = z.infer<typeof grant>;

export const findingCodes = [
  'not_transactional',
  'history_not_kept',
  'not_restored',
  'view_broken',
  'right_not_restored',
  'login_not_restored',
] as const;
const finding = z.object({ code: z.enum(findingCodes), object: z.string(), reason: z.string() });
export type Finding = z.infer<typeof finding>;

export const contentSchema = z.object({
  format: z.literal(1),
  flavour: z.enum(['mariadb', 'mysql']),
  release: z.string(),
  /** The transactions that the dump contains, as a GTID. */
  gtid: z.string(),
  schemas: z.array(z.object({ name, charset: z.string(), collation: z.string() })),
  sequences: z.array(z.object({ schema: name, name, definition: z.string(), next: z.string() })),
  tables: z.array(table),
  programs: z.array(program),
  accounts: z.array(account),
  grants: z.array(grant),
});
/** All content except the rows. */
export type Content = z.infer<typeof contentSchema>;

const tableSum = z.object({ schema: name, name, rows: z.number(), bytes: z.number(), sum: z.string() });
/** The size and checksum of a dumped table. `sum` does not depend on the order of the rows. */
export type TableSum = z.infer<typeof tableSum>;

export const manifestSchema = z.object({ format: z.literal(1), tables: z.array(tableSum), findings: z.array(finding) });
export type Manifest = z.infer<typeof manifestSchema>;

/** A part of a dump. The order is `content.json`, `data/<n>.rows`, `manifest.json`. */
export interface Section {
  path: string;
  content: AsyncIterable<Buffer>;
}
