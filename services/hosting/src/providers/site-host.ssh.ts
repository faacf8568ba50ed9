import { randomBytes } from 'node:crypto';
import { withSpan } from './driver-span';
import { translated } from './local-errors';
import { type HostedSite, type Order, type SiteHost, SiteHostError, type SiteHostReader, type SiteRef } from './site-host';
import { remoteScripts } from './ssh/remote-scripts';
import { packOverSsh } from './ssh/ssh-pack';
import { probeOverSsh } from './ssh/ssh-probe';
import { databaseOf, runOnSite, type SiteCall, urlOf } from './ssh/ssh-site';
import { stageOverSsh } from './ssh/ssh-stage';
import type { SshArchiveTools, SshTools } from './ssh/ssh-tools';

const firstRelease = 'first';

async function describe(tools: SshTools, site: SiteRef, signal?: AbortSignal): Promise<HostedSite | null> {
  const lines = (await runOnSite(tools, { script: remoteScripts.describe, site, signal }))
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const valuesOf = (wanted: string): string[] => lines.flatMap(([name, value]) => (name === wanted && value !== undefined ? [value] : []));
  const [currentRelease] = valuesOf('current');
  if (currentRelease === undefined) return null;
  return { url: urlOf(tools.config, site), currentRelease, releases: valuesOf('release'), freeBytes: Number(valuesOf('free')[0] ?? 0) };
}

async function requireSite(tools: SshTools, site: SiteRef, signal: AbortSignal): Promise<HostedSite> {
  const hosted = await describe(tools, site, signal);
  if (hosted === null) throw new Error('the host has no such site');
  return hosted;
}

/** What handlers may ask a host that is reached over ssh. */
export function sshSiteHostReader(tools: SshTools): SiteHostReader {
  return { describe: (site, signal) => describe(tools, site, signal), describeApp: async () => null };
}

async function* bytesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

async function createSite(tools: SshTools, site: SiteRef, domain: string, { fence, signal }: Order): Promise<HostedSite> {
  const facts = { site_id: site.siteId, domain, url: urlOf(tools.config, site) };
  await runOnSite(tools, {
    script: remoteScripts.create,
    site,
    fence,
    releaseId: firstRelease,
    args: [databaseOf(site, firstRelease), JSON.stringify(facts)],
    input: bytesOf(`${randomBytes(24).toString('hex')}\n`),
    signal,
  });
  return requireSite(tools, site, signal);
}

/**
 * Sites on a machine with OpenSSH, tar, flock, Postgres and its client programs. What is dangerous happens there, under the site's lock and
 * after its fence; its web server serves `current` and honours `maintenance`.
 */
export function sshSiteHost(tools: SshArchiveTools): SiteHost {
  const steer = async (site: SiteRef, { fence, signal }: Order, call: Omit<SiteCall, 'site' | 'fence' | 'signal'>): Promise<void> => {
    await runOnSite(tools, { site, fence, signal, ...call });
  };
  return {
    ...sshSiteHostReader(tools),
    create: (site, domain, order) => createSite(tools, site, domain, order),
    destroy: (site, order) => steer(site, order, { script: remoteScripts.destroy }),
    pack: (site, releaseId, archive, order) =>
      withSpan('site_host.pack', { 'site.id': site.siteId }, () => translated(packOverSsh(tools, site, releaseId, archive, order))),
    stage: (site, releaseId, archive, order) =>
      withSpan('site_host.stage', { 'site.id': site.siteId }, () => translated(stageOverSsh(tools, site, releaseId, archive, order))),
    freeze: (site, ttlMs, order) => steer(site, order, { script: remoteScripts.freeze, args: [String(Math.ceil(ttlMs))] }),
    thaw: (site, order) => steer(site, order, { script: remoteScripts.thaw }),
    switchRelease: (site, { from, to }, order) => steer(site, order, { script: remoteScripts.switchRelease, releaseId: to, args: [from] }),
    probe: async (site, { signal }) => {
      const { currentRelease } = await requireSite(tools, site, signal);
      return probeOverSsh(tools, site, currentRelease, signal);
    },
    restartApp: () => Promise.reject(new SiteHostError('no_app', 'a host over ssh runs no application of a site')),
    retire: (site, releaseId, order) =>
      steer(site, order, { script: remoteScripts.retire, releaseId, args: [databaseOf(site, releaseId)] }),
  };
}
