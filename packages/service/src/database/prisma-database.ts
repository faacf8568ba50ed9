import type { Database, Sql } from './sql';

/** The part of a generated Prisma client (or its transaction client) that plain SQL needs. */
export interface PrismaSql {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

interface PrismaRoot<Tx> {
  $transaction<T>(work: (tx: Tx) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
  $disconnect(): Promise<void>;
}

/** A service's own database: its process opens it once and closes it at its end. */
export interface PrismaDatabase<Tx> extends Database<Tx> {
  /** The pool, for a look-up that needs no transaction. */
  pool: Tx;
  close(): Promise<void>;
}

/** How long a transaction may wait for a connection and then run. Past that the caller gets 503: its work was rolled back. */
const transactionLimits = { maxWait: 1_500, timeout: 10_000 };

const sqlOf = (client: PrismaSql): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    // The shape of a row is the query's own promise; it stands beside the SQL that makes it true.
    return (await client.$queryRawUnsafe(text, ...values)) as Row[];
  },
});

/** A Prisma client as a {@link Database}: stores use `tx` as Prisma, packages use `sql(tx)`. */
export function prismaDatabase<Tx extends PrismaSql>(client: PrismaRoot<Tx> & Tx): PrismaDatabase<Tx> {
  const pool = sqlOf(client);
  return {
    transaction: (work) => client.$transaction(work, transactionLimits),
    sql: (tx) => (tx === undefined ? pool : sqlOf(tx)),
    pool: client,
    close: () => client.$disconnect(),
  };
}
