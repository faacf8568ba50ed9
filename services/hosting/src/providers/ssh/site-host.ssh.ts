import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RootKey } from '@drydock/archive';
import { timeLimit } from '@drydock/process';
import { withSpan } from '../driver-span';
import { translated } from '../local-errors';
import type {
  AppRestarted,
  FencedCall,
  HostedApp,
  HostedSite,
  Probe,
  SiteHost,
  SiteHostReader,
  SiteRef,
} from '../site-host';
import { databaseOf, isAnswer, isWord, runOnSite, type SiteCall, urlOf } from './run-on-site';
import { packOverSsh, stageOverSsh } from './ssh-archive';
import { type SshHosts, type SshTools, toolsOf } from './ssh-connection';

const firstRelease = 'first';

interface SiteOverSsh extends HostedSite {
  /**
   * The mtime of the restart file of the application, in seconds since 1970. 0 before the first restart, null for a
   * site without an application.
   */
  restartSeconds: number | null;
}

async function describe(hosts: SshHosts, site: SiteRef, signal?: AbortSignal): Promise<SiteOverSsh | null> {
  const tools = toolsOf(hosts, site);
  const lines = (await runOnSite(tools, { script: 'describe', site, signal }))
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const valuesOf = (wanted: string): string[] =>
    lines.flatMap(([name, value]) => (name === wanted && value !== undefined ? [value] : []));
  const [currentRelease] = valuesOf('current');
  if (currentRelease === undefined) return null;
  const [[freeBytes = ''], [restarted]] = [valuesOf('free'), valuesOf('app')];
  if (!/^\d+$/.test(freeBytes)) throw new Error('the host did not say how much room it has');
  return {
    url: urlOf(tools.config, site),
    currentRelease,
    releases: valuesOf('release'),
    // A stage makes only folders whose names pass `isWord`, so other folders are left out.
    begun: valuesOf('begun').filter(isWord),
    freeBytes: Number(freeBytes),
    restartSeconds: restarted === undefined ? null : Number(restarted),
  };
}

async function requireSite(hosts: SshHosts, site: SiteRef, signal: AbortSignal): Promise<SiteOverSsh> {
  const hosted = await describe(hosts, site, signal);
  if (hosted === null) throw new Error('the host has no such site');
  return hosted;
}

async function describeApp(hosts: SshHosts, site: SiteRef, signal?: AbortSignal): Promise<HostedApp | null> {
  const seconds = (await describe(hosts, site, signal))?.restartSeconds ?? null;
  return seconds === null
    ? null
    : { generation: seconds, lastRestartAt: seconds === 0 ? null : new Date(seconds * 1_000) };
}

export function sshSiteHostReader(hosts: SshHosts): SiteHostReader {
  return {
    describe: (site, signal) => describe(hosts, site, signal),
    describeApp: (site, signal) => describeApp(hosts, site, signal),
    listDatabases: async () => [],
    readStorage: async () => null,
  };
}

async function* bytesOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

async function createSite(
  hosts: SshHosts,
  site: SiteRef,
  domain: string,
  { fence, signal }: FencedCall,
): Promise<HostedSite> {
  const tools = toolsOf(hosts, site);
  const facts = { site_id: site.siteId, domain, url: urlOf(tools.config, site) };
  await runOnSite(tools, {
    script: 'create',
    site,
    fence,
    releaseId: firstRelease,
    args: [databaseOf(site, firstRelease), JSON.stringify(facts)],
    input: bytesOf(`${randomBytes(24).toString('hex')}\n`),
    signal,
  });
  return requireSite(hosts, site, signal);
}

async function restartApp(hosts: SshHosts, site: SiteRef, { fence, signal }: FencedCall): Promise<AppRestarted> {
  const answer = await runOnSite(toolsOf(hosts, site), { script: 'restartApp', site, fence, signal });
  const [before = Number.NaN, now = Number.NaN] = answer.trim().split(' ').map(Number);
  if (!Number.isSafeInteger(before) || !Number.isSafeInteger(now))
    throw new Error('the host did not say when it restarted the application');
  return { restartedAt: new Date(now * 1_000), generation: before };
}

/**
 * Sites on a machine with OpenSSH, tar, flock, a database server and its client programs. Scripts on the machine make
 * every change; each of them first takes the lock of the site and checks the fence. The web server of the machine
 * serves `current` and obeys the flag `maintenance`.
 */
export function sshSiteHost(hosts: SshHosts, archiveKey: RootKey): SiteHost {
  const steer = async (
    site: SiteRef,
    { fence, signal }: FencedCall,
    call: Omit<SiteCall, 'site' | 'fence' | 'signal'>,
  ): Promise<void> => {
    await runOnSite(toolsOf(hosts, site), { site, fence, signal, ...call });
  };
  const movingTools = (site: SiteRef) => ({ ...toolsOf(hosts, site), archiveKey });
  return {
    ...sshSiteHostReader(hosts),
    firstRelease,
    readsOnce: false,
    create: (site, { domain }, call) => createSite(hosts, site, domain, call),
    destroy: (site, call) => steer(site, call, { script: 'destroy' }),
    pack: (site, releaseId, archive, call) =>
      withSpan('site_host.pack', { 'site.id': site.siteId }, () =>
        translated(packOverSsh(movingTools(site), site, releaseId, archive, call), 'pack'),
      ),
    stage: (site, releaseId, archive, call) =>
      withSpan('site_host.stage', { 'site.id': site.siteId }, () =>
        translated(stageOverSsh(movingTools(site), site, releaseId, archive, call), 'stage'),
      ),
    freeze: (site, ttlMs, call) => steer(site, call, { script: 'freeze', args: [String(Math.ceil(ttlMs))] }),
    thaw: (site, call) => steer(site, call, { script: 'thaw' }),
    switchRelease: (site, { from, to }, call) =>
      steer(site, call, { script: 'switchRelease', releaseId: to, args: [from] }),
    probe: async (site, { signal }) =>
      probeOverSsh(toolsOf(hosts, site), site, await requireSite(hosts, site, signal), signal),
    restartApp: (site, call) => restartApp(hosts, site, call),
    retire: (site, releaseId, call) =>
      steer(site, call, { script: 'retire', releaseId, args: [databaseOf(site, releaseId)] }),
  };
}

/** The web server of the host lets a request with this header past the maintenance flag, if it comes from loopback. */
export const probeHeader = 'x-drydock-probe';

const answerMsMax = 15_000;

/** The HTTP status of the front page of the site. The web server of the host is asked through ssh, on its loopback. */
async function askPage({ connection, config }: SshTools, site: SiteRef, stop: AbortSignal): Promise<number> {
  const { host, pathname } = new URL(urlOf(config, site));
  const signal = AbortSignal.any([stop, timeLimit(answerMsMax)]);
  const channel = await connection.forward(config.web_port, signal);
  try {
    return await new Promise<number>((resolve, reject) => {
      const headers = { host, [probeHeader]: '1' };
      const asked = request(
        { path: pathname, headers, signal, createConnection: () => asSocket(channel) },
        (response) => {
          response.resume();
          response.on('error', reject);
          response.on('end', () => resolve(response.statusCode ?? 0));
        },
      );
      asked.on('error', reject);
      asked.end();
    });
  } finally {
    channel.destroy();
  }
}

/**
 * Gives a channel the methods of a socket that Node's HTTP client calls. An ssh channel has no socket options, so their
 * setters do nothing.
 */
function asSocket(channel: Duplex): Duplex {
  const tune = (): Duplex => channel;
  return Object.assign(channel, {
    setKeepAlive: tune,
    setNoDelay: tune,
    setTimeout: tune,
    ref: tune,
    unref: tune,
    destroySoon: () => channel.destroy(),
  });
}

/**
 * Whether an answer with this status comes from the application. After a touch of the restart file Passenger answers
 * only from newer processes, so the file's mtime serves as their generation.
 */
const startedWithin = (status: number): boolean => status >= 100 && status < 500;

/** Probes the current release over HTTP and SQL. Rejects only if the signal is aborted. */
async function probeOverSsh(
  tools: SshTools,
  site: SiteRef,
  { currentRelease, restartSeconds }: { currentRelease: string; restartSeconds: number | null },
  signal: AbortSignal,
): Promise<Probe> {
  const args = [databaseOf(site, currentRelease)];
  const [page, sql] = await Promise.allSettled([
    askPage(tools, site, signal),
    runOnSite(tools, { script: 'probe', site, releaseId: currentRelease, args, signal }),
  ]);
  signal.throwIfAborted();
  const faults = [page, sql].flatMap((asked) => (asked.status === 'rejected' ? [String(asked.reason)] : []));
  const httpStatus = page.status === 'fulfilled' ? page.value : 0;
  return {
    httpStatus,
    isSqlOk: sql.status === 'fulfilled' && /^\d+$/.test(sql.value.trim()),
    isSqlAnswered: sql.status === 'fulfilled' || isAnswer(sql.reason),
    appGeneration: startedWithin(httpStatus) ? restartSeconds : null,
    detail: faults.join('; ') || 'answered by the host',
  };
}
