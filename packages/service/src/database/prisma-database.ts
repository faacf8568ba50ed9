import v8 from 'node:v8';
import { scaled } from '@drydock/process';
import type { Database, InTransaction, Sql } from './sql';

// Prisma's query compiler is WebAssembly. V8's quick code is enough for it, because plans are cached. Optimised code
// would take 14 MB more of each process, and as long for a query.
v8.setFlagsFromString('--liftoff-only');

/** The part of a generated Prisma client (or its transaction client) that plain SQL needs. */
export interface PrismaSql {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

interface PrismaRoot<Client> {
  $transaction<T>(work: (client: Client) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
  $disconnect(): Promise<void>;
}

/** A service's own database: its process opens it once and closes it at its end. */
export interface PrismaDatabase<Client> extends Database<InTransaction<Client>> {
  /** The pool, for a look-up that needs no transaction. */
  pool: Client;
  sql(client?: Client): Sql;
  close(): Promise<void>;
}

/**
 * How long a transaction may wait for a connection and then run. Beyond that the caller gets 503, and its work was
 * rolled back.
 */
const transactionLimits = () => ({ maxWait: scaled(1_500), timeout: scaled(10_000) });

const sqlOf = (client: PrismaSql): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    // The shape of a row is determined by the query alone. The type stands beside the SQL.
    return (await client.$queryRawUnsafe(text, ...values)) as Row[];
  },
});

/** A Prisma client as a {@link Database}: stores use `tx` as Prisma, packages use `sql(tx)`. */
export function prismaDatabase<Client extends PrismaSql>(client: PrismaRoot<Client> & Client): PrismaDatabase<Client> {
  const pool = sqlOf(client);
  return {
    transaction: (work) => client.$transaction((inside) => work(inside as InTransaction<Client>), transactionLimits()),
    sql: (tx) => (tx === undefined ? pool : sqlOf(tx)),
    pool: client,
    close: () => client.$disconnect(),
  };
}

/**
 * A table whose rows belong to an owner, by Prisma's names: `fields` is its `…ScalarFieldEnum`. Columns have the same
 * names in snake case.
 */
export interface OwnedTable<Field extends string> {
  name: string;
  fields: Readonly<Record<Field, Field>>;
}

/**
 * Reads the owner's row with all its columns, and locks the row until the transaction ends. So a decision about the row
 * is still right when it is written. One statement reads and locks, because the row could change in between. Resolves
 * with null if the row is gone, or belongs to another organisation or to the other mode. `Row` is Prisma's type of the
 * row.
 */
export async function lockRow<Row extends object>(
  tx: InTransaction<PrismaSql>,
  { name, fields }: OwnedTable<Extract<keyof Row, string>>,
  { orgId, mode }: { orgId: string; mode: string },
  id: string,
): Promise<Row | null> {
  const columns = Object.keys(fields).map((field) => `${columnOf(field)} AS "${field}"`);
  const text = `SELECT ${columns.join(', ')} FROM ${name} WHERE id = $1::uuid AND org_id = $2::uuid AND mode = $3::mode
    FOR UPDATE`;
  const [row] = await sqlOf(tx).query<Row>(text, [id, orgId, mode]);
  return row ?? null;
}

const columnOf = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
