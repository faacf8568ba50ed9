import type pg from 'pg';
import { z } from 'zod';
import { type Copied, copyOut } from './copy-table';
import { readProperties } from './database-properties';
import { dumpSchema } from './dump-schema';
import { readLargeObjects } from './large-objects';
import { listSequences, listTables, qualify } from './list-tables';
import type { DumpManifest, TableEntry, TablesFile } from './manifest';
import { dataPath, type Section, sectionPaths, textSection } from './section';
import { openSession } from './session';
import { SnapshotReaders } from './snapshot-readers';
import { asTransferError, TransferError } from './transfer-error';

export interface DumpRequest {
  /** A reader's, which may read everything, or the owner's where no table forces row security. No TLS. */
  url: string;
  signal?: AbortSignal | undefined;
}

const snapshotSchema = z.object({ id: z.string(), version: z.coerce.number(), encoding: z.string() });
const snapshotSql = `select pg_catalog.pg_export_snapshot() as id, current_setting('server_version_num') as version,
  current_setting('server_encoding') as encoding`;

const policyRolesSql = `select distinct r.rolname as name from pg_catalog.pg_policy p cross join unnest(p.polroles) as named(role)
  join pg_catalog.pg_roles r on r.oid = named.role order by 1`;

async function listPolicyRoles(client: pg.Client): Promise<string[]> {
  const rows = z.array(z.object({ name: z.string() })).parse((await client.query(policyRolesSql)).rows);
  return rows.map(({ name }) => name);
}

/** Keeps tables from being altered or dropped until the last row was read; reading and writing go on. */
async function lockTables(client: pg.Client, tables: TablesFile['tables']): Promise<void> {
  const atOnce = 500;
  for (let from = 0; from < tables.length; from += atOnce) {
    await client.query(
      `lock table only ${tables
        .slice(from, from + atOnce)
        .map(qualify)
        .join(', only ')} in access share mode`,
    );
  }
}

/** What Postgres refuses to hand out of a table, with the table's name. */
async function* named(table: TableEntry, rows: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* rows;
  } catch (error) {
    throw asTransferError('dump_failed', `rows of ${qualify(table)}`, error, `table ${qualify(table)}`);
  }
}

function manifestOf(head: TablesFile, copied: (Copied | undefined)[], largeObjects: number): DumpManifest {
  const tables = head.tables.map((table, index) => {
    const counts = copied[index];
    if (counts === undefined) throw new TransferError('dump_failed', `${dataPath(index)} was not read to its end`);
    return { ...table, ...counts };
  });
  return { ...head, tables, large_objects: largeObjects };
}

/**
 * One database as a stream of sections, all of one repeatable-read snapshot: tables.json, schema-pre.sql, schema-post.sql, database.json,
 * data/<n>.copy, sequences.json, large-objects.bin, manifest.json. Contents may be read two at a time; each must be read before the manifest's.
 * Writers are not disturbed, DDL waits. Throws {@link TransferError} `dump_failed`, errors of Postgres, or the signal's reason.
 */
export async function* dumpDatabase(request: DumpRequest): AsyncGenerator<Section> {
  const { url, signal } = request;
  const session = await openSession(url, { purpose: 'read', signal });
  const { client } = session;
  let readers: SnapshotReaders | undefined;
  try {
    await client.query('begin isolation level repeatable read read only');
    const snapshot = snapshotSchema.parse((await client.query(snapshotSql)).rows[0]);
    const tables = await listTables(client);
    await lockTables(client, tables);
    const { version, encoding } = snapshot;
    const policyRoles = await listPolicyRoles(client);
    const properties = await readProperties(client);
    const head: TablesFile = { format_version: 2, server_version_num: version, encoding, policy_roles: policyRoles, tables };
    const [pre, post] = await Promise.all([
      dumpSchema({ url, section: 'pre-data', snapshotId: snapshot.id, signal }),
      dumpSchema({ url, section: 'post-data', snapshotId: snapshot.id, signal }),
    ]);
    const sections = new SnapshotReaders(url, snapshot.id, signal);
    readers = sections;
    yield textSection(sectionPaths.tables, () => Promise.resolve(JSON.stringify(head)));
    yield textSection(sectionPaths.schemaPre, () => Promise.resolve(pre));
    yield textSection(sectionPaths.schemaPost, () => Promise.resolve(post));
    yield textSection(sectionPaths.properties, () => Promise.resolve(JSON.stringify(properties)));
    const copied: (Copied | undefined)[] = tables.map(() => undefined);
    for (const [index, table] of tables.entries()) {
      const onEnd = (counts: Copied): void => {
        copied[index] = counts;
      };
      yield { path: dataPath(index), content: sections.read((reader) => named(table, copyOut(reader, table, onEnd))) };
    }
    let largeObjects = 0;
    yield textSection(sectionPaths.sequences, async () => JSON.stringify(await listSequences(client)));
    yield { path: sectionPaths.largeObjects, content: readLargeObjects(client, () => void largeObjects++) };
    yield textSection(sectionPaths.manifest, () => Promise.resolve(JSON.stringify(manifestOf(head, copied, largeObjects))));
  } finally {
    await readers?.close();
    await session.close();
  }
}
