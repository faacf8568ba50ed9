import { request } from 'node:http';
import type { Probe, SiteRef } from '../site-host';
import { remoteScripts } from './remote-scripts';
import { databaseOf, runOnSite, urlOf } from './ssh-site';
import type { SshTools } from './ssh-tools';

/** The host's web server lets a request with it, made from the host's own loopback, past the maintenance flag. */
export const probeHeader = 'x-drydock-probe';

const answerMsMax = 15_000;

/** Status of the site's front page as the host's own web server answers it, from the host. */
async function askPage({ connection, config }: SshTools, site: SiteRef, signal: AbortSignal): Promise<number> {
  const { host, pathname } = new URL(urlOf(config, site));
  const channel = await connection.forward(config.web_port);
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        path: pathname,
        headers: { host, [probeHeader]: '1' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerMsMax)]),
        createConnection: () => channel,
      },
      (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => resolve(response.statusCode ?? 0));
      },
    );
    asked.on('error', reject);
    asked.end();
  }).then(
    (status) => {
      channel.destroy();
      return Number(status);
    },
    (error: unknown) => {
      channel.destroy();
      throw error;
    },
  );
}

/** Asks the current release over HTTP and SQL. Rejects only when the order is stopped. */
export async function probeOverSsh(tools: SshTools, site: SiteRef, currentRelease: string, signal: AbortSignal): Promise<Probe> {
  const args = [databaseOf(site, currentRelease)];
  const [page, sql] = await Promise.allSettled([
    askPage(tools, site, signal),
    runOnSite(tools, { script: remoteScripts.probe, site, args, signal }),
  ]);
  signal.throwIfAborted();
  const faults = [page, sql].flatMap((asked) => (asked.status === 'rejected' ? [String(asked.reason)] : []));
  return {
    httpStatus: page.status === 'fulfilled' ? page.value : 0,
    isSqlOk: sql.status === 'fulfilled' && /^\d+$/.test(sql.value.trim()),
    appGeneration: null,
    detail: faults.join('; ') || 'answered by the host',
  };
}
