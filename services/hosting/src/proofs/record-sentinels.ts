import { archiveRoots } from '@drydock/agent/site/site-jobs.protocol';
import type { RootKey } from '@drydock/archive/format/archive-keys';
import { completeLimits } from '@drydock/archive/format/archive-limits';
import { textOfBytes } from '@drydock/archive/format/path-bytes';
import { type ArchiveLink, openArchive } from '@drydock/archive/read/open-archive';
import { openEntries } from '@drydock/archive/read/open-entries';
import { readBlocks } from '@drydock/archive/read/read-blocks';
import { manifestSchema as mysqlManifestSchema } from '@drydock/mysql/dump/manifest';
import { manifestSchema as postgresManifestSchema, readJson } from '@drydock/postgres/dump/manifest';
import { sectionPaths } from '@drydock/postgres/dump/section';
import { z } from 'zod';
import { appEntry, createSample, isServedAsItIs, type Sentinels, sentinelsMax } from './sentinel.rules';

/** The manifest of a dump of Postgres or MySQL, which both have under the same path. */
const manifestSchema = z.union([postgresManifestSchema, mysqlManifestSchema]);

/**
 * Takes samples from the archive's index of the site as it was packed: hashes of some files, and the row counts of some
 * tables. The archive's MACs seal them, so nothing that happened since can have changed them. @throws ArchiveError,
 * TransferError
 */
export async function recordSentinels(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels> {
  return { files: await sampleFiles(link, key, signal), tables: await sampleTables(link, key, signal) };
}

async function sampleFiles(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels['files']> {
  const archive = await openArchive(link, key, completeLimits());
  const sample = createSample<Sentinels['files'][number]>(sentinelsMax, Math.random);
  let isApp = false;
  for await (const { block } of readBlocks(archive, archiveRoots.files, signal)) {
    for (const entry of block.entries) {
      const path = textOfBytes(entry.path);
      if (path === appEntry) isApp = true;
      if (isServedAsItIs({ type: entry.type, path, size: entry.size }))
        sample.offer({ path: `/${path}`, sha256: entry.sha256.toString('hex') });
    }
  }
  return isApp ? [] : sample.items;
}

async function sampleTables(link: ArchiveLink, key: RootKey, signal: AbortSignal): Promise<Sentinels['tables']> {
  const sample = createSample<Sentinels['tables'][number]>(sentinelsMax, Math.random);
  for await (const section of openEntries({ chain: [link], key, root: archiveRoots.database, signal })) {
    if (section.path !== sectionPaths.manifest) continue;
    const { tables } = await readJson({ path: section.path, content: section.content() }, manifestSchema);
    for (const { schema, name, rows } of tables) sample.offer({ schema, name, rows });
  }
  return sample.items;
}
