import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { ColumnTypeEnum, type SqlQueryable } from '@prisma/driver-adapter-utils';
import pg from 'pg';

type QueryCallback = (error: unknown, result: unknown) => unknown;
type AnyQuery = (...args: unknown[]) => unknown;

/** Postgres' internal type "char", which introspection reads and adapter-pg 7.10.0 refuses to pass on. */
const internalCharOid = 18;
const textOid = 25;

/**
 * The indexes of the columns of type "char", by the array of a result's rows. The adapter passes on the same array, but
 * says less about the columns.
 */
const charColumns = new WeakMap<object, number[]>();

/** Makes the adapter treat a "char" as text, and notes for which columns that was done. */
function reportCharAsText<T>(result: T): T {
  if (typeof result !== 'object' || result === null || !('fields' in result) || !Array.isArray(result.fields))
    return result;
  const fields: { dataTypeID: number }[] = result.fields;
  const found = [...fields.keys()].filter((column) => fields[column]?.dataTypeID === internalCharOid);
  for (const field of fields) if (field.dataTypeID === internalCharOid) field.dataTypeID = textOid;
  if (found.length > 0 && 'rows' in result && Array.isArray(result.rows)) charColumns.set(result.rows, found);
  return result;
}

/**
 * The engine accepts a "char" (for example the kind of a constraint) only as a character, and panics when it gets text.
 */
function reportCharAsCharacter<Adapter extends SqlQueryable>(adapter: Adapter): Adapter {
  const queryRaw = adapter.queryRaw.bind(adapter);
  adapter.queryRaw = async (query) => {
    const result = await queryRaw(query);
    for (const column of charColumns.get(result.rows) ?? []) result.columnTypes[column] = ColumnTypeEnum.Character;
    return result;
  };
  return adapter;
}

/**
 * adapter-pg cuts a script at each semicolon and sends the pieces one by one. A process that dies between two pieces
 * leaves half of the script. A query without values may contain many statements.
 */
function sendWhole<Adapter extends SqlQueryable & { executeScript(script: string): Promise<void> }>(
  adapter: Adapter,
  asOne: (script: string) => string,
): Adapter {
  adapter.executeScript = async (script) => {
    await adapter.executeRaw({ sql: asOne(script), args: [], argTypes: [] });
  };
  return adapter;
}

/** A pg client whose results have no column of a type that the adapter would refuse. */
class MigrationClient extends pg.Client {
  // pg's query has eight overloads: a pool uses the one with a callback, and a transaction uses the one that returns a
  // promise
  override query(...args: unknown[]): never {
    const callback = args.at(-1);
    const passedOn = typeof callback === 'function' ? [...args.slice(0, -1), fixingCallback(callback)] : args;
    const result = Reflect.apply(super.query as AnyQuery, this, passedOn);
    return (result instanceof Promise ? result.then(reportCharAsText) : result) as never;
  }
}

function fixingCallback(callback: object) {
  return (error: unknown, result: unknown): unknown =>
    Reflect.apply(callback as QueryCallback, undefined, [error, reportCharAsText(result)]);
}

/**
 * The connection settings of a URL, one by one. With `connectionString`, the adapter opens the real database where it
 * should open the shadow database.
 */
export function connectionSettings(databaseUrl: string): pg.PoolConfig {
  const url = new URL(databaseUrl);
  return {
    host: url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    database: decodeURIComponent(url.pathname.slice(1)),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    ...(url.searchParams.has('sslmode') ? { ssl: url.searchParams.get('sslmode') !== 'disable' } : {}),
  };
}

/** The adapter through which Prisma's engine reaches Postgres. */
export class MigrationAdapter extends PrismaPg {
  readonly #settings: pg.PoolConfig;
  readonly #asOne: (script: string) => string;

  /** `asOne` returns the query that is sent for a script. */
  constructor(databaseUrl: string, asOne: (script: string) => string) {
    const settings = { ...connectionSettings(databaseUrl), Client: MigrationClient };
    super(settings);
    this.#settings = settings;
    this.#asOne = asOne;
  }

  override async connect(): ReturnType<PrismaPg['connect']> {
    return sendWhole(reportCharAsCharacter(await super.connect()), this.#asOne);
  }

  /**
   * adapter-pg 7.10.0 drops the shadow database while its own pool still uses it, which Postgres refuses. So this
   * closes the pool first and then drops it.
   */
  override async connectToShadowDb(): ReturnType<PrismaPg['connectToShadowDb']> {
    const database = `prisma_migrate_shadow_db_${randomUUID()}`;
    const admin = await this.connect();
    await admin.executeScript(`CREATE DATABASE "${database}"`);
    const shadow = sendWhole(
      reportCharAsCharacter(await new PrismaPg({ ...this.#settings, database }).connect()),
      this.#asOne,
    );
    const close = shadow.dispose.bind(shadow);
    shadow.dispose = async () => {
      await close();
      await admin.executeScript(`DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`);
      await admin.dispose();
    };
    return shadow;
  }
}
