import v8 from 'node:v8';
import type { CreatedBetween } from '@drydock/contracts/platform/values';
import { scaled } from '@drydock/process';
import type { Database, InTransaction, Sql } from './sql';

// Prisma's query compiler is WebAssembly. With this flag, V8 does not optimise WebAssembly, and each process needs 14
// MB less. Queries do not become slower, because their plans are cached.
v8.setFlagsFromString('--liftoff-only');

/** The part of a generated Prisma client, or of its transaction client, that plain SQL needs. */
export interface PrismaSql {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

interface PrismaRoot<Client> {
  $transaction<T>(work: (client: Client) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
  $disconnect(): Promise<void>;
}

/** A service's own database. The service's process opens the database once and closes it last. */
export interface PrismaDatabase<Client> extends Database<InTransaction<Client>> {
  /** Prisma's client outside a transaction, for reads that need none. */
  pool: Client;
  sql(client?: Client): Sql;
  close(): Promise<void>;
}

/**
 * Milliseconds for which a transaction may wait for a connection and then run. A transaction that takes longer is
 * rolled back, and the caller gets 503.
 */
const transactionLimits = () => ({ maxWait: scaled(1_500), timeout: scaled(10_000) });

const sqlOf = (client: PrismaSql): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    // The caller states the type of the rows, because only its SQL determines their shape.
    return (await client.$queryRawUnsafe(text, ...values)) as Row[];
  },
});

/**
 * Makes a {@link Database} of a Prisma client. A service's store uses `tx` as Prisma's client. Code of a package runs
 * its SQL with `sql(tx)`.
 */
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
 * A table whose rows belong to an owner. `fields` is Prisma's `…ScalarFieldEnum` of the table. The columns have the
 * same names in snake case.
 */
export interface OwnedTable<Field extends string> {
  name: string;
  fields: Readonly<Record<Field, Field>>;
}

/**
 * Reads a row of this owner with all its columns, and locks it until the transaction ends. One statement does both,
 * because the row could change between two statements. Resolves with null if the row is gone, or belongs to another
 * organisation or to the other mode. `Row` is Prisma's type of the row.
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

/** Prisma's condition for rows that were created from `created_after` on and before `created_before`. */
export const createdBetween = ({ created_after: from, created_before: to }: CreatedBetween) =>
  from === undefined && to === undefined
    ? {}
    : { createdAt: { ...(from === undefined ? {} : { gte: from }), ...(to === undefined ? {} : { lt: to }) } };

/** Prisma's condition for rows whose `field` has one of `values`. If `values` is undefined, all rows meet it. */
export const oneOf = <Name extends string, Value>(field: Name, values: Value[] | undefined) =>
  (values === undefined ? {} : { [field]: { in: values } }) as { [Key in Name]?: { in: Value[] } };

/**
 * Prisma's condition for rows whose metadata has this name with this value. If `metadata` is undefined, all rows meet
 * it.
 */
export const carrying = (metadata: { name: string; value: string } | undefined) =>
  metadata === undefined ? {} : { metadata: { path: [metadata.name], equals: metadata.value } };

/**
 * Prisma's condition for rows with `text` in one of these fields, in upper or lower case. If `text` is undefined, all
 * rows meet it. The wildcards of LIKE are escaped here, because Prisma does not escape them.
 */
export const holding = (text: string | undefined, ...fields: string[]) =>
  text === undefined
    ? {}
    : {
        OR: fields.map((field) => ({
          [field]: { contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' as const },
        })),
      };
