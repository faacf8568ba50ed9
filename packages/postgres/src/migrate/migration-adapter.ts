import { randomUUID } from 'node:crypto';
import { PrismaPg } from '@prisma/adapter-pg';
import { ColumnTypeEnum, type SqlQueryable } from '@prisma/driver-adapter-utils';
import pg from 'pg';

type QueryCallback = (error: unknown, result: unknown) => unknown;
type AnyQuery = (...args: unknown[]) => unknown;

/** Postgres' internal type "char". The engine reads it, but adapter-pg 7.10.0 refuses it. */
const internalCharOid = 18;
const textOid = 25;

/**
 * The positions of a result's columns of type "char". The key is the array of its rows, which the adapter passes on
 * without the types.
 */
const charColumns = new WeakMap<object, number[]>();

/** Makes the adapter treat "char" as text, and records those columns. */
function reportCharAsText<T>(result: T): T {
  if (typeof result !== 'object' || result === null || !('fields' in result) || !Array.isArray(result.fields))
    return result;
  const fields: { dataTypeID: number }[] = result.fields;
  const found = [...fields.keys()].filter((column) => fields[column]?.dataTypeID === internalCharOid);
  for (const field of fields) if (field.dataTypeID === internalCharOid) field.dataTypeID = textOid;
  if (found.length > 0 && 'rows' in result && Array.isArray(result.rows)) charColumns.set(result.rows, found);
  return result;
}

/** Reports the recorded columns as characters, because the engine panics when it gets a "char" as text. */
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
 * Sends a script as one query. adapter-pg splits it at semicolons and sends each part, so that a killed process would
 * leave half of it.
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

/** A pg client that hides the type "char" from the adapter. */
class MigrationClient extends pg.Client {
  // pg's query has eight overloads: a pool passes a callback, and a transaction awaits the promise
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
 * Returns a URL's connection settings one by one. With `connectionString`, the adapter would open the real database
 * instead of the shadow database.
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

/** The adapter with which Prisma's engine uses Postgres. */
export class MigrationAdapter extends PrismaPg {
  readonly #settings: pg.PoolConfig;
  readonly #asOne: (script: string) => string;

  /** `asOne` returns the query for a script. */
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
   * Closes the shadow database's pool before dropping the database. adapter-pg 7.10.0 drops the database first, which
   * Postgres refuses.
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
