import { openEntries } from '@drydock/archive/open-entries';
import { pack } from '@drydock/archive/pack';
import { streamRoot } from '@drydock/archive/pack-roots';
import type { DatabaseHostClient } from '@drydock/database-host/client';
import { dumpDatabase } from '@drydock/pg-transfer/dump-database';
import { qualify } from '@drydock/pg-transfer/list-tables';
import { loadDatabase } from '@drydock/pg-transfer/load-database';
import type { DumpManifest } from '@drydock/pg-transfer/manifest';
import { sectionsInTurn } from '@drydock/pg-transfer/sections-in-turn';
import pg from 'pg';
import { claimOf } from './claim-of';
import {
  type ArchiveToVerify,
  type ArchiveToWrite,
  DatabaseProviderError,
  type DatabaseRef,
  type MovingOrder,
  type PackedArchive,
  type VerifiedRestore,
} from './database-provider';

/** The one root of every archive of a database. */
const root = 'database';

export interface LocalTools {
  client: DatabaseHostClient;
  archiveKey: Buffer;
}

const withDatabase = (url: string, database: string): string => Object.assign(new URL(url), { pathname: `/${database}` }).href;

/** One snapshot of the database that serves, straight into the archive. Memory does not grow with it. */
export async function packDatabase(
  { client, archiveKey }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  { sink, archiveId, sequence, createdAt }: ArchiveToWrite,
  order: MovingOrder,
): Promise<PackedArchive> {
  const { signal, progress } = order;
  const access = await client.access(databaseId, claimOf(order));
  const expectedBytes = (await client.readDatabase(databaseId, signal)).size_bytes ?? 0;
  const { manifestMac, manifestSha256, sizeBytes, rawBytes } = await pack({
    roots: [streamRoot(root, dumpDatabase({ url: withDatabase(access.url, access.database_name), signal }))],
    sink,
    key: archiveKey,
    // The archive format names its subject a site.
    identity: { archiveId, siteId: databaseId, orgId, sequence },
    createdAt,
    signal,
    onProgress: (packed) => progress(packed.rawBytes / Math.max(expectedBytes, packed.rawBytes, 1)),
  });
  return { major: access.major, manifestMac, checksumSha256: manifestSha256, sizeBytes, rawBytes };
}

/** Into a scratch instance, which is removed whatever happens; the counts are compared by the load, the row is read as a customer would. */
export async function verifyRestore(
  { client, archiveKey: key }: LocalTools,
  { databaseId, orgId }: DatabaseRef,
  major: number,
  { source, archiveId, manifestMac }: ArchiveToVerify,
  order: MovingOrder,
): Promise<VerifiedRestore> {
  const { signal, progress } = order;
  const scratchId = `verify-${order.fence}`;
  const scratch = await client.makeScratch(databaseId, { scratchId, major }, claimOf(order));
  try {
    const chain = [{ source, expected: { archiveId, siteId: databaseId, orgId, manifestMac } }];
    const onProgress = ({ tablesLoaded, tablesTotal }: { tablesLoaded: number; tablesTotal: number }): void =>
      progress(tablesLoaded / Math.max(tablesTotal, 1));
    const sections = sectionsInTurn(openEntries({ chain, key, root, signal }));
    const makeRoles = (roles: string[]): Promise<void> => client.makeScratchRoles(databaseId, { scratchId, roles }, claimOf(order));
    const manifest = await loadDatabase({ url: scratch.url, sections, makeRoles, signal, onProgress });
    const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
    return { tables: manifest.tables.length, rows, readFrom: await readOneRow(scratch, manifest) };
  } finally {
    // Not with the order's signal: what was made is removed also when the work is stopped.
    await client.dropScratch(databaseId, scratchId, { fence: order.fence, workflowId: order.workflowId });
  }
}

async function readOneRow(scratch: { url: string; ca_certificate: string }, { tables }: DumpManifest): Promise<string | null> {
  const filled = tables.filter((table) => table.rows > 0).map(qualify);
  if (filled.length === 0) return null;
  const client = new pg.Client({ connectionString: scratch.url, ssl: { ca: scratch.ca_certificate }, connectionTimeoutMillis: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    for (const table of filled) {
      const { rowCount } = await client.query(`select * from only ${table} limit 1`);
      if (rowCount === 1) return table;
      // Row security that holds for owners too may hide every row from this one.
      const { rowCount: hidden } = await client.query('select where pg_catalog.row_security_active($1::regclass)', [table]);
      if (hidden === 0) throw new DatabaseProviderError('archive_refused', `no row could be read back from ${table}`);
    }
    return null;
  } finally {
    await client.end();
  }
}
