/**
 * Plain SQL on one Postgres: inside a transaction, or on the pool. `text` has `$1` placeholders; a uuid, jsonb or
 * timestamptz value is cast in the text (`$1::uuid`). Rejects with the driver's error, which {@link
 * classifyDatabaseError} classifies.
 */
export interface Sql {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

declare const inTransaction: unique symbol;

/**
 * A client within a transaction. A store that writes or locks takes one; a store that only reads takes the client
 * itself, and so accepts both. Only `transaction` makes one, and the compiler tells them apart.
 */
export type InTransaction<Client> = Client & { readonly [inTransaction]: true };

/**
 * A service's database. `Tx` is the type of a transaction in the service's own stores (Prisma's client, a pg
 * connection), so that a store and the SQL of workflow or packages/service commit together.
 */
export interface Database<Tx> {
  /** Commits if `work` resolves, rolls back if it rejects. Keep it short, without calls to the outside. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** SQL within `tx`, or on the pool without one. */
  sql(tx?: Tx): Sql;
}

/** A UUIDv7 of Postgres' clock. */
export const uuidv7Sql = `encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
  substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
  FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid`;
