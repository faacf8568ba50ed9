import { createHash, randomBytes } from 'node:crypto';
import type { SiteHostClient, SiteHostReaderClient } from '@drydock/agent/clients';
import {
  type SiteStorage as AgentStorage,
  firstReleaseId,
  type PackSpec,
  type SiteDescription,
} from '@drydock/agent/site';
import { type ArchiveLink, deriveKeys, deriveKeysOf, encodeKeys, type RootKey, saltBytes } from '@drydock/archive';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { timeLimit } from '@drydock/process';
import { request } from 'undici';
import { withSpan } from './driver-span';
import { isUnknownCall, translated, unknownAsNull } from './local-errors';
import {
  type ArchiveToStage,
  type ArchiveToWrite,
  type CountedPart,
  type DrillProbe,
  type FencedCall,
  type FencedCallWithProgress,
  type HostedSite,
  linksOf,
  type PackedArchive,
  type SiteHost,
  type SiteHostReader,
  type SiteRef,
  type SiteStorage,
  type StagedRelease,
} from './site-host';

interface LocalTools {
  client: SiteHostClient;
  archiveKey: RootKey;
}

/**
 * The description of an archive for a job of the agent: the recorded MAC of its manifest, and only the keys that open
 * this archive.
 */
async function describeArchive(link: ArchiveLink, archiveKey: RootKey): Promise<PackSpec['parents'][number]> {
  const { archiveId, manifestMac } = link.expected;
  return { archive_id: archiveId, manifest_mac: manifestMac, keys: encodeKeys(await deriveKeysOf(link, archiveKey)) };
}

/**
 * Has the agent pack the release in the site's box. The agent sends the objects of the archive to this process, which
 * writes them to the storage.
 */
async function packRelease(
  { client, archiveKey }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { sink, archiveId, sequence, createdAt, expectedRawBytes, parents = [] }: ArchiveToWrite,
  { fence, workflowId, signal, progress }: FencedCallWithProgress,
): Promise<PackedArchive> {
  const links = linksOf(site, parents);
  const spec: PackSpec = {
    release_id: releaseId,
    archive_id: archiveId,
    origin: { site_id: site.siteId, organisation_id: site.orgId },
    sequence,
    created_at: createdAt.toISOString(),
    keys: encodeKeys(deriveKeys(archiveKey, randomBytes(saltBytes), archiveId)),
    parents: await Promise.all(links.map((link) => describeArchive(link, archiveKey))),
    expected_raw_bytes: expectedRawBytes,
  };
  const archives = { sources: links.map(({ source }) => source), sink };
  const packed = await client.pack(site.siteId, spec, archives, {
    claim: { fence, workflowId, signal },
    onProgress: progress,
  });
  return {
    manifestMac: packed.manifest_mac,
    checksumSha256: packed.manifest_sha256,
    sizeBytes: packed.size_bytes,
    rawBytes: packed.raw_bytes,
    skipped: packed.skipped,
  };
}

/** Has the agent unpack the archive in the site's box. This process fetches the objects that the agent asks for. */
async function stageArchive(
  { client, archiveKey }: LocalTools,
  site: SiteRef,
  releaseId: string,
  { parents = [], origin = site, contents = 'all', ...newest }: ArchiveToStage,
  { fence, workflowId, signal, progress }: FencedCallWithProgress,
): Promise<StagedRelease> {
  const links = linksOf(origin, [...parents, newest]);
  const spec = {
    release_id: releaseId,
    origin: { site_id: origin.siteId, organisation_id: origin.orgId },
    chain: await Promise.all(links.map((link) => describeArchive(link, archiveKey))),
    // Agents of earlier versions refuse this field, so it is sent only for a partial restore.
    ...(contents === 'all' ? {} : { contents }),
  };
  const archives = { sources: links.map(({ source }) => source) };
  const { lost, database } = await client.stage(site.siteId, spec, archives, {
    claim: { fence, workflowId, signal },
    onProgress: progress,
  });
  return { lost, database };
}

const probePath = '/';

const claimOf = ({ fence, workflowId, signal }: FencedCall) => ({ fence, workflowId, signal });

/** An agent of an earlier version cannot list its databases, and has only Postgres. */
const onlyPostgres: SiteDatabase[] = ['postgres'];

/** Null for a site without a live release, because its creation has not ended. */
function toHosted({
  url,
  current_release: currentRelease,
  releases,
  free_bytes: freeBytes,
}: SiteDescription): HostedSite | null {
  return currentRelease === null ? null : { url, currentRelease, releases, freeBytes };
}

function requireHosted(description: SiteDescription): HostedSite {
  const hosted = toHosted(description);
  if (hosted === null) throw new Error('the host made a site without a release');
  return hosted;
}

const toPart = (part: AgentStorage['files'], isFiles: boolean): CountedPart | null =>
  part && {
    state: part.state !== 'far_over' ? part.state : isFiles ? 'full' : 'closed',
    bytes: part.bytes,
    countedAt: new Date(part.counted_at),
  };

const toStorage = ({ limit_bytes: limitBytes, files, database }: AgentStorage): SiteStorage => ({
  limitBytes,
  files: toPart(files, true),
  database: toPart(database, false),
});

/**
 * The storage of all sites of the agent, by their ids. Empty for an agent of an earlier version, which has no such
 * call.
 */
export async function listLocalStorage(
  client: Pick<SiteHostClient, 'listStorage'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SiteStorage>> {
  const listed = await client.listStorage(signal).catch((error: unknown) => {
    if (isUnknownCall(error)) return {};
    throw error;
  });
  return new Map(Object.entries(listed).map(([siteId, storage]) => [siteId, toStorage(storage)]));
}

export function localSiteHostReader(client: SiteHostReaderClient): SiteHostReader {
  return {
    ...localDescriptions(client),
    listDatabases: (signal) =>
      client.readDatabases(signal).catch((error: unknown) => {
        if (isUnknownCall(error)) return onlyPostgres;
        throw error;
      }),
    // An agent of an earlier version has no call for what it has counted.
    readStorage: async ({ siteId }, signal) => {
      const storage = await unknownAsNull(client.readStorage(siteId, signal)).catch((error: unknown) => {
        if (isUnknownCall(error)) return null;
        throw error;
      });
      return storage && toStorage(storage);
    },
  };
}

function localDescriptions(
  client: Pick<SiteHostReaderClient, 'readSite' | 'readApp'>,
): Pick<SiteHostReader, 'describe' | 'describeApp'> {
  return {
    describe: async ({ siteId }, signal) => {
      const description = await unknownAsNull(client.readSite(siteId, signal));
      return description === null ? null : toHosted(description);
    },
    describeApp: async ({ siteId }, signal) => {
      const app = await unknownAsNull(client.readApp(siteId, signal));
      if (app === null || !app.has_app) return null;
      const lastRestartAt = app.last_restart_at === null ? null : new Date(app.last_restart_at);
      return { generation: app.generation, lastRestartAt };
    },
  };
}

/** Drives the sites of the site agent at SITE_HOST_URL. */
export function localSiteHost({ client, archiveKey }: { client: SiteHostClient; archiveKey: RootKey }): SiteHost {
  const tools = { client, archiveKey };
  return {
    ...localDescriptions(client),
    firstRelease: firstReleaseId,
    readsOnce: true,
    create: async ({ siteId, mode, orgId }, { domain, database }, call) => {
      // Agents of earlier versions refuse this field, so it is sent only for MySQL. Without it an agent makes Postgres.
      const wanted = { domain, mode, organisation_id: orgId, ...(database === 'mysql' && { database }) };
      return requireHosted(await translated(client.ensureSite(siteId, wanted, claimOf(call))));
    },
    destroy: ({ siteId }, call) => translated(client.destroySite(siteId, claimOf(call))),
    pack: (site, releaseId, archive, call) =>
      withSpan('site_host.pack', { 'site.id': site.siteId }, () =>
        translated(packRelease(tools, site, releaseId, archive, call), 'pack'),
      ),
    stage: (site, releaseId, archive, call) =>
      withSpan('site_host.stage', { 'site.id': site.siteId }, () =>
        translated(stageArchive(tools, site, releaseId, archive, call), 'stage'),
      ),
    freeze: async ({ siteId }, ttlMs, call) => {
      await translated(client.freezeSite(siteId, ttlMs, claimOf(call)));
    },
    thaw: ({ siteId }, call) => translated(client.thawSite(siteId, claimOf(call))),
    switchRelease: async ({ siteId }, { from, to }, call) => {
      await translated(client.switchRelease(siteId, { releaseId: to, expectedRelease: from }, claimOf(call)));
    },
    probe: async ({ siteId }, call) => {
      const {
        http_status,
        sql_ok,
        sql_answered,
        app_generation: appGeneration,
        detail,
      } = await translated(client.probeSite(siteId, probePath, call.signal));
      return { httpStatus: http_status ?? 0, isSqlOk: sql_ok, isSqlAnswered: sql_answered, appGeneration, detail };
    },
    restartApp: async ({ siteId }, call) => {
      const { restarted_at, generation } = await translated(client.restartApp(siteId, claimOf(call)));
      return { restartedAt: new Date(restarted_at), generation };
    },
    retire: ({ siteId }, releaseId, call) => translated(client.removeRelease(siteId, releaseId, claimOf(call))),
  };
}

const answerMs = 30_000;

export function localDrillProbe(client: SiteHostClient): DrillProbe {
  return {
    hashServed: async ({ siteId }, path, signal) => {
      const { url } = await client.readSite(siteId, signal);
      const deadline = AbortSignal.any([signal, timeLimit(answerMs)]);
      const { statusCode, body } = await request(new URL(path, url), { signal: deadline });
      const hash = createHash('sha256');
      for await (const piece of body) hash.update(piece);
      return statusCode === 200 ? hash.digest('hex') : null;
    },
    countRows: ({ siteId }, table, { fence, workflowId, signal }) =>
      client.countRows(siteId, table, { fence, workflowId, signal }),
  };
}
