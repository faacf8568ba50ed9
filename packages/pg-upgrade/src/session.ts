import { openSession, type Session } from '@drydock/pg-transfer/session';
import type pg from 'pg';
import { z } from 'zod';
import { sessionPrefix } from './own-objects';

/** Both instances of one move, by the platform's role, and on whose behalf. */
export interface Move {
  /** Of the instance that serves, database `postgres`. */
  oldUrl: string;
  /** Of the new major's instance, database `postgres`. */
  targetUrl: string;
  /** The customer's. */
  databaseName: string;
  path: 'logical' | 'offline';
  /** Of the claim: sessions of an older one are ended before a stage begins. */
  fence: string;
  signal?: AbortSignal | undefined;
  /** 0 to 1. */
  progress?: (fraction: number) => void;
}

/** The same server and login, another database. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${encodeURIComponent(database)}`;
  return changed.href;
}

/** A session of a stage: its commits are durable, and its name carries the fence. */
export async function openStageSession(url: string, { fence, signal }: Pick<Move, 'fence' | 'signal'>): Promise<Session> {
  const session = await openSession(url, signal);
  await session.client.query("select pg_catalog.set_config('application_name', $1, false)", [`${sessionPrefix}${fence}`]);
  await session.client.query('set synchronous_commit = on');
  return session;
}

const endOlderSql = `select pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.pg_stat_activity
  where application_name like $1 || '%' and pid <> pg_catalog.pg_backend_pid()
    and pg_catalog.substr(application_name, pg_catalog.length($1) + 1) ~ '^[0-9]{1,19}$'
    and pg_catalog.substr(application_name, pg_catalog.length($1) + 1)::bigint < $2::bigint`;

export interface Stage {
  old: pg.Client;
  target: pg.Client;
}

/**
 * Runs the work of one stage with a session in the customer's database of each instance (`databases: 'server'`: in `postgres` instead). Sessions that a
 * worker of an older claim has left are ended first, so that two never work on one target.
 */
export async function withStage<T>(
  move: Move,
  work: (stage: Stage) => Promise<T>,
  databases: 'customer' | 'server' = 'customer',
): Promise<T> {
  const opened: Session[] = [];
  const open = async (url: string): Promise<pg.Client> => {
    const session = await openStageSession(url, move);
    opened.push(session);
    return session.client;
  };
  try {
    for (const url of [move.oldUrl, move.targetUrl]) await (await open(url)).query(endOlderSql, [sessionPrefix, move.fence]);
    const [oldServer, targetServer] = opened;
    if (databases === 'server' && oldServer && targetServer) return await work({ old: oldServer.client, target: targetServer.client });
    const old = await open(withDatabase(move.oldUrl, move.databaseName));
    return await work({ old, target: await open(withDatabase(move.targetUrl, move.databaseName)) });
  } catch (error) {
    move.signal?.throwIfAborted();
    throw error;
  } finally {
    await Promise.all(opened.map((session) => session.close()));
  }
}

/** All rows of a query, parsed. */
export async function readRows<Row>(client: pg.ClientBase, schema: z.ZodType<Row>, sql: string, values: unknown[] = []): Promise<Row[]> {
  return z.array(schema).parse((await client.query(sql, values)).rows);
}
