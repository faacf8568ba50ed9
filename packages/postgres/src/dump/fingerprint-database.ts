import { createHash } from 'node:crypto';
import type pg from 'pg';
import { z } from 'zod';
import { openSession } from '../session/session';
import { dumpBothSections } from './dump-schema';
import { readLargeObjects } from './large-objects';
import { listSequences, listTables, qualify, quoteName } from './list-tables';
import { splitStatements } from './split-statements';

export interface DatabaseFingerprint {
  /** Tables by `"schema"."table"`. Their hash does not depend on the order of rows. */
  tables: Record<string, { rows: number; hash: string }>;
  sequences: Record<string, { last_value: string; is_called: boolean }>;
  largeObjects: { count: number; hash: string };
  /**
   * SHA-256 of pg_dump's statements, without leading `--` comments, SET statements, owners and privileges. Only servers
   * of one major version have comparable hashes.
   */
  schemaHash: string;
  /** SHA-256 of all other fields. */
  digest: string;
}

export interface TableToHash {
  /** The quoted and qualified name. */
  name: string;
  /** The columns to hash. Default: all. */
  columns?: readonly string[] | undefined;
  /** True to include the rows of the table's partitions. */
  isRoot?: boolean;
}

/** Returns a table's number of rows, and a hash that does not depend on their order. */
export async function hashTable(
  client: pg.ClientBase,
  { name, columns, isRoot = false }: TableToHash,
): Promise<{ rows: number; hash: string }> {
  const row = columns === undefined ? 't.*' : `row(${columns.map((column) => `t.${quoteName(column)}`).join(', ')})`;
  return contentsSchema.parse((await client.query(contentsSql(isRoot ? name : `only ${name}`, row))).rows[0]);
}

const contentsSchema = z.object({ rows: z.coerce.number(), hash: z.string() });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Selects the number of rows, and two sums of independent 64-bit hashes of each row's text. By xor instead of a sum,
 * two equal rows would cancel each other out. record_out is used, because a cast to text could be a function of the
 * customer. `t.*` is the row, even if a column is named t.
 */
const contentsSql = (table: string, row: string): string => `select count(*) as rows,
  coalesce(sum(pg_catalog.hashtextextended(r.line, 0)),
    0)::text || ':' || coalesce(sum(pg_catalog.hashtextextended(r.line, 7)), 0)::text as hash
  from (select pg_catalog.textin(pg_catalog.record_out(${row})) as line from ${table} as t) as r`;

async function hashTables(client: pg.Client, names: string[]): Promise<DatabaseFingerprint['tables']> {
  const tables: DatabaseFingerprint['tables'] = {};
  for (const name of names) tables[name] = await hashTable(client, { name });
  return tables;
}

async function hashLargeObjects(client: pg.Client): Promise<DatabaseFingerprint['largeObjects']> {
  const hash = createHash('sha256');
  let count = 0;
  for await (const part of readLargeObjects(client, () => void count++)) hash.update(part);
  return { count, hash: hash.digest('hex') };
}

async function hashSchema(request: {
  url: string;
  snapshotId: string;
  tables: number;
  signal?: AbortSignal | undefined;
}): Promise<string> {
  const { pre, post } = await dumpBothSections({ ...request, omitPrivileges: true });
  const statements = splitStatements(`${pre}\n${post}`).filter(({ outline }) => !outline.startsWith('SET '));
  return sha256(JSON.stringify(statements.map(({ text }) => text.replace(/^(?:--[^\n]*\n|\s)+/, ''))));
}

/**
 * Returns a fingerprint of a database's content, for comparisons. It is read from one snapshot, except for the
 * positions of sequences, which no snapshot covers. Every row is read. Throws errors of Postgres, {@link TransferError}
 * `dump_failed` or `message_too_large`, or the signal's reason.
 */
export async function fingerprintDatabase(request: {
  url: string;
  signal?: AbortSignal | undefined;
}): Promise<DatabaseFingerprint> {
  const { client, close } = await openSession(request.url, { purpose: 'read', signal: request.signal });
  try {
    await client.query('begin isolation level repeatable read read only');
    const { id } = z
      .object({ id: z.string() })
      .parse((await client.query('select pg_catalog.pg_export_snapshot() as id')).rows[0]);
    const names = (await listTables(client)).map(qualify).sort();
    const schemaHash = await hashSchema({ ...request, snapshotId: id, tables: names.length });
    const tables = await hashTables(client, names);
    const positions = (await listSequences(client)).map(
      ({ last_value, is_called, ...named }) => [qualify(named), { last_value, is_called }] as const,
    );
    const contents = {
      tables,
      sequences: Object.fromEntries(positions),
      largeObjects: await hashLargeObjects(client),
      schemaHash,
    };
    return { ...contents, digest: sha256(JSON.stringify(contents)) };
  } finally {
    await close();
  }
}
