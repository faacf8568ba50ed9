import type { SiteHostClient, SiteHostReaderClient } from '@drydock/agent/site/client';
import { firstReleaseId, type SiteDescription } from '@drydock/agent/site/protocol';
import type { RootKey } from '@drydock/archive/format/archive-keys';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import { withSpan } from './driver-span';
import { isUnknownCall, translated, unknownAsNull } from './local-errors';
import { packRelease } from './local-pack';
import { stageArchive } from './local-stage';
import type { FencedCall, HostedSite, SiteHost, SiteHostReader } from './site-host';

/** The page that a probe asks for. */
const probePath = '/';

const claimOf = ({ fence, workflowId, signal }: FencedCall) => ({ fence, workflowId, signal });

/** The answer for an agent that is too old to know the question. */
const onlyPostgres: SiteDatabase[] = ['postgres'];

/** Null for a site whose creation was interrupted: it has no live release yet. */
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

/** The part for requests: it only reads from the site-host process. */
export function localSiteHostReader(client: SiteHostReaderClient): SiteHostReader {
  return {
    ...localDescriptions(client),
    listDatabases: (signal) =>
      client.readDatabases(signal).catch((error: unknown) => {
        if (isUnknownCall(error)) return onlyPostgres;
        throw error;
      }),
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

/**
 * Sites of the site-host process on the worker's own machine: files are moved directly, everything else is asked of the
 * process.
 */
export function localSiteHost({ client, archiveKey }: { client: SiteHostClient; archiveKey: RootKey }): SiteHost {
  const tools = { client, archiveKey };
  return {
    ...localDescriptions(client),
    firstRelease: firstReleaseId,
    readsOnce: true,
    create: async ({ siteId, mode, orgId }, { domain, database }, call) => {
      // An older agent does not know the field, and makes Postgres without it.
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
