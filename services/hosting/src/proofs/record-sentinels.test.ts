import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { archiveRoots } from '@drydock/agent/site';
import { pack, type StreamEntry, streamRoot } from '@drydock/archive';
import type { Manifest as MysqlManifest } from '@drydock/mysql';
import type { DumpManifest } from '@drydock/postgres';
import { uuidv7 } from 'uuidv7';
import { localBackupStorage } from '../providers/backup-storage.local';
import { recordSentinels } from './restore-drill.workflow';

const folder = mkdtempSync(path.join(tmpdir(), 'drydock-sentinels-'));
const storage = localBackupStorage(folder);
const archiveKey = randomBytes(32);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function* dumpOf(manifest: object): AsyncGenerator<StreamEntry> {
  yield { path: 'data/0.rows', content: Readable.from([Buffer.from('rows')]) };
  yield { path: 'manifest.json', content: Readable.from([Buffer.from(JSON.stringify(manifest))]) };
}

async function* nothing(): AsyncGenerator<StreamEntry> {}

async function record(manifest: object) {
  const [archiveId, siteId, orgId] = [uuidv7(), uuidv7(), uuidv7()];
  const key = `live/${siteId}/${archiveId}/1`;
  const { manifestMac } = await pack({
    roots: [streamRoot(archiveRoots.files, nothing()), streamRoot(archiveRoots.database, dumpOf(manifest))],
    sink: storage.sink(key),
    key: archiveKey,
    identity: { archiveId, siteId, orgId, sequence: 1 },
    createdAt: new Date(),
  });
  const expected = { archiveId, siteId, orgId, manifestMac };
  return recordSentinels({ source: storage.source(key), expected }, archiveKey, new AbortController().signal);
}

const ofPostgres: DumpManifest = {
  format_version: 3,
  server_version_num: 180001,
  encoding: 'UTF8',
  policy_roles: [],
  tables: [{ schema: 'public', name: 'orders', columns: ['id'], format: 'binary', rows: 7, bytes: 99 }],
  large_objects: 0,
};
const ofMysql: MysqlManifest = {
  format: 1,
  tables: [{ schema: 'site', name: 'orders', rows: 7, bytes: 99, sum: '12' }],
  findings: [],
};

it.each([
  ['Postgres', 'public', ofPostgres],
  ['MariaDB', 'site', ofMysql],
] as const)(
  'a backup with a database of %s tells how many rows each of its tables had',
  async (_engine, schema, manifest) => {
    expect(await record(manifest)).toEqual({ files: [], tables: [{ schema, name: 'orders', rows: 7 }] });
  },
);

it('a manifest of another shape is refused', async () => {
  await expect(record({ tables: [{ schema: 'public', name: 'orders', rows: 7 }] })).rejects.toMatchObject({
    code: 'dump_malformed',
  });
});
