/**
 * Plain SQL on a Postgres, in a transaction or on the pool. `text` has `$1` placeholders. A value of type uuid, jsonb
 * or timestamptz is cast in the text (`$1::uuid`). Rejects with the driver's error, which {@link classifyDatabaseError}
 * classifies.
 */
export interface Sql {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

declare const inTransaction: unique symbol;

/**
 * A client in a transaction. Only {@link Database.transaction} makes one. A store that writes or locks takes this type,
 * so the compiler refuses a client outside a transaction. A store that only reads takes the client's own type, so it
 * accepts clients inside and outside a transaction.
 */
export type InTransaction<Client> = Client & { readonly [inTransaction]: true };

/**
 * A service's database. `Tx` is the type of a transaction in the service's own stores (Prisma's client, or a pg
 * connection). A store and the SQL of packages/workflow and packages/service can use the same transaction.
 */
export interface Database<Tx> {
  /**
   * Runs `work` in a transaction. Commits if `work` resolves and rolls back if `work` rejects. `work` must be short
   * and call nothing outside the database.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /** SQL in `tx`, or on the pool if `tx` is absent. */
  sql(tx?: Tx): Sql;
}

/** SQL for a new UUIDv7 by Postgres' clock. */
export const uuidv7Sql = `encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
  substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
  FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid`;
