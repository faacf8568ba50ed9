import { extract } from '@drydock/archive/extract';
import { openEntries } from '@drydock/archive/open-entries';
import { loadDatabase } from '@drydock/pg-transfer/load-database';
import { sectionsInTurn } from '@drydock/pg-transfer/sections-in-turn';
import pg from 'pg';
import { withSpan } from './driver-span';
import { archiveRoots, type LocalTools } from './local-pack';
import { type ArchiveToStage, linksOf, type MovingOrder, type SiteRef } from './site-host';
import { flushBehind, syncFileSystem } from './sync-file-system';

/** Files and database at once: the one waits for the disk, the other for Postgres. The first failure stops the other. */
export async function stageArchive(
  { client, archiveKey: key }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { parents = [], origin = site, ...newest }: ArchiveToStage,
  { fence, workflowId, signal, progress }: MovingOrder,
): Promise<void> {
  const release = await client.stageRelease(site.siteId, releaseId, { fence, workflowId, signal });
  const chain = linksOf(origin, [...parents, newest]);
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const owner = release.owner === null ? {} : { owner: release.owner };
  const files = withSpan('site_host.stage.files', {}, async () => {
    const flush = flushBehind(release.files_dir, both);
    const onProgress = ({ rawBytes, rawBytesTotal }: { rawBytes: number; rawBytesTotal: number }) => {
      flush(rawBytes);
      progress(rawBytes / Math.max(rawBytesTotal, 1));
    };
    await extract({ chain, key, roots: { [archiveRoots.files]: release.files_dir }, ...owner, signal: both, onProgress });
    await syncFileSystem(release.files_dir, both);
  });
  const database = withSpan('site_host.stage.database', {}, async () => {
    const sections = sectionsInTurn(openEntries({ chain, key, root: archiveRoots.database, signal: both }));
    await loadDatabase({ url: release.database_url, sections, signal: both });
    await flushDatabase(release.database_url);
  });
  await bothOf(files, database, stop);
}

/** Resolves when both have; after a failure it waits for the other to stop, so that nothing writes any more, and rejects with the first. */
async function bothOf(files: Promise<void>, database: Promise<void>, stop: AbortController): Promise<void> {
  try {
    await Promise.all([files, database]);
  } finally {
    stop.abort();
    await Promise.allSettled([files, database]);
  }
}

/** The load commits without waiting for the disk; one commit that does wait has everything before it on disk too. */
async function flushDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await client.query('set synchronous_commit = on');
    await client.query("select pg_catalog.pg_logical_emit_message(true, 'drydock', 'staged')");
  } finally {
    await client.end();
  }
}
