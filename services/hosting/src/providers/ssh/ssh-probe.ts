import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Probe, SiteRef } from '../site-host';
import { isAnswer } from './run-remote';
import { databaseOf, runOnSite, urlOf } from './ssh-site';
import type { SshTools } from './ssh-tools';

/** The host's web server lets a request with it, made from the host's own loopback, past the maintenance flag. */
export const probeHeader = 'x-drydock-probe';

const answerMsMax = 15_000;

/** Status of the site's front page as the host's own web server answers it, from the host. */
async function askPage({ connection, config }: SshTools, site: SiteRef, stop: AbortSignal): Promise<number> {
  const { host, pathname } = new URL(urlOf(config, site));
  const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMsMax)]);
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
 * A channel with the methods of a socket that Node's HTTP client calls. They do nothing, because ssh has nothing to
 * tune there.
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
 * By Passenger's contract every process was started after the last touch of the restart file. Its mtime counts the
 * application's processes.
 */
const startedWithin = (status: number): boolean => status >= 100 && status < 500;

/**
 * Probes the current release over HTTP and SQL. `restartSeconds`: the mtime of the application's restart file, null
 * without one. Rejects only if the signal is aborted.
 */
export async function probeOverSsh(
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
