import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { SiteRef } from '../src/providers/site-host';
import { sshSiteHost } from '../src/providers/site-host.ssh';
import { parseSshHost, type SshHostConfig } from '../src/providers/ssh/ssh-config';
import { SshConnection } from '../src/providers/ssh/ssh-connection';
import { databaseOf, roleOf, urlOf } from '../src/providers/ssh/ssh-site';
import type { SiteHostRig } from './site-host-rig';
import { startHostPostgres, startSshd } from './ssh-processes';

export { missingForSsh } from './ssh-processes';

export interface SshRig extends SiteHostRig {
  config: SshHostConfig;
}

function isInMaintenance(folder: string): boolean {
  const file = path.join(folder, 'maintenance');
  return existsSync(file) && Number(readFileSync(file, 'utf8').split('\n')[0]) * 1_000 > Date.now();
}

async function renderPage(folder: string, databaseUrl: string): Promise<string> {
  const page = readFileSync(path.join(folder, 'current/files/index.html'), 'utf8');
  const [query, sql] = /<\?sql (.*?) \?>/.exec(page) ?? [];
  if (query === undefined || sql === undefined) return page;
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ v: unknown }>(sql);
    return page.replace(query, String(rows[0]?.v));
  } finally {
    await client.end();
  }
}

const siteUrlPattern = /^\/(live|sandbox)\/([^/]+)\/$/;

/** As a host's web server is to be set up: it serves what `current` points to, and nothing to visitors while the maintenance flag holds. */
function serveSites(sitesDir: string, databaseUrlOf: (site: SiteRef) => string): Promise<Server> {
  const server = createServer((request, response) => {
    const [, mode, siteId = ''] = siteUrlPattern.exec(request.url ?? '') ?? [];
    const folder = path.join(sitesDir, mode ?? 'none', siteId);
    if (mode === undefined || !existsSync(folder)) {
      response.writeHead(404).end();
    } else if (isInMaintenance(folder) && request.headers['x-drydock-probe'] === undefined) {
      response.writeHead(503).end();
    } else {
      const site: SiteRef = { mode: mode === 'live' ? 'live' : 'sandbox', siteId, orgId: '' };
      renderPage(folder, databaseUrlOf(site)).then(
        (page) => response.end(page),
        () => response.writeHead(404).end(),
      );
    }
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the web server has no port');
  return address.port;
}

/** A whole host on loopback: OpenSSH's server, Debian's Postgres and client programs, a web server. */
export async function openSshRig(archiveKey: Buffer): Promise<SshRig> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-'));
  chmodSync(folder, 0o711);
  const sitesDir = path.join(folder, "sites of 'ours'");
  mkdirSync(sitesDir);
  const [postgres, sshd] = [await startHostPostgres(folder), await startSshd(folder)];
  const databaseUrlOf = (site: SiteRef): string => {
    const siteDir = path.join(sitesDir, site.mode, site.siteId);
    const release = path.basename(readlinkSync(path.join(siteDir, 'current')));
    const password = readFileSync(path.join(siteDir, 'database-password'), 'utf8');
    return `postgresql://${roleOf(site)}:${password}@127.0.0.1:${postgres.port}/${databaseOf(site, release)}`;
  };
  const web = await serveSites(sitesDir, databaseUrlOf);
  const config = parseSshHost(
    JSON.stringify({
      host: '127.0.0.1',
      port: sshd.port,
      user: sshd.user,
      private_key_file: sshd.privateKeyFile,
      host_key_fingerprint: sshd.fingerprint,
      sites_dir: sitesDir,
      database_admin_url: postgres.adminUrl,
      public_url_template: `http://127.0.0.1:${portOf(web)}/{mode}/{site_id}/`,
      web_port: portOf(web),
    }),
  );
  const connection = new SshConnection(config);
  return {
    driver: sshSiteHost({ connection, config, archiveKey }),
    config,
    sitesDir,
    placeOf: async (site) => ({
      url: urlOf(config, site),
      filesDir: path.join(sitesDir, site.mode, site.siteId, 'current/files'),
      databaseUrl: databaseUrlOf(site),
    }),
    close: async () => {
      await connection.close();
      web.closeAllConnections();
      await new Promise((resolve) => web.close(resolve));
      await sshd.stop();
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
