import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type LedgerEntry, readLedger } from '@drydock/testing/ledger';
import { describeWith } from '@drydock/testing/skipped';
import { roleOf, urlOf } from '../src/providers/ssh/run-on-site';
import { sshSiteHost } from '../src/providers/ssh/site-host.ssh';
import { parseSshHost, type SshHostConfig } from '../src/providers/ssh/ssh-config';
import { SshConnection } from '../src/providers/ssh/ssh-connection';
import type { HostDatabase, Login } from './host-database';
import { missingForMariadb, startHostMariadb } from './host-mariadb';
import { findPostgresDir, startHostPostgres } from './host-postgres';
import type { SiteHostRig } from './site-host-rig';
import { fillFiles, hashTree, pageOf } from './site-state';
import { missingForSshd, type StartedSshd, startSshd } from './ssh-processes';
import { serveSites } from './ssh-web';

export interface SshRig extends SiteHostRig {
  /** The JSON of SSH_SITE_HOST. */
  settings: string;
  config: SshHostConfig;
  sshd: StartedSshd;
  database: HostDatabase;
  loginOf(site: { mode: string; siteId: string }): Login;
  /** The changes that were requested of the host, and whether it made them. */
  ledger(): LedgerEntry[];
}

interface RigOptions {
  /** The size in MiB of a separate disk for the sites. Absent if the sites need none. */
  diskMegabytes?: number;
}

const mountSmallDisk = (folder: string, megabytes: number): void =>
  void execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'drydock', folder], { stdio: 'ignore' });

/** Whether this process may mount a small disk. Only root may mount, and in some containers not even root. */
export function canMountSmallDisk(): boolean {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-disk-'));
  try {
    mountSmallDisk(folder, 1);
    execFileSync('umount', [folder]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const postgresPrograms = findPostgresDir() === null ? 'postgresql' : '';

/** Starts a whole host on loopback: OpenSSH's server, Debian's database server and client programs, a web server. */
async function openRig(
  archiveKey: Buffer,
  startDatabase: (folder: string) => Promise<HostDatabase>,
  { diskMegabytes }: RigOptions = {},
): Promise<SshRig> {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-'));
  chmodSync(folder, 0o711);
  const sitesDir = path.join(folder, "sites of 'ours'");
  mkdirSync(sitesDir);
  if (diskMegabytes !== undefined) mountSmallDisk(sitesDir, diskMegabytes);
  const [database, sshd] = [await startDatabase(folder), await startSshd(folder)];
  const folderOf = ({ mode, siteId }: { mode: string; siteId: string }): string => path.join(sitesDir, mode, siteId);
  const loginOf: SshRig['loginOf'] = ({ mode, siteId }) => {
    const site = { mode: mode === 'live' ? 'live' : 'sandbox', siteId, orgId: '' } as const;
    const { database: name } = JSON.parse(readFileSync(path.join(folderOf(site), 'current/release.json'), 'utf8')) as {
      database: string;
    };
    const password = readFileSync(path.join(folderOf(site), 'database-password'), 'utf8');
    return { user: roleOf(site), password, database: name };
  };
  const web = await serveSites(sitesDir, (site) => (sql) => database.ask(loginOf(site), sql));
  const settings = JSON.stringify({
    host: '127.0.0.1',
    port: sshd.port,
    user: sshd.user,
    private_key_file: sshd.privateKeyFile,
    host_key_fingerprint: sshd.fingerprint,
    sites_dir: sitesDir,
    database_admin_url: database.adminUrl,
    public_url_template: `http://127.0.0.1:${web.port}/{mode}/{site_id}/`,
    web_port: web.port,
  });
  const config = parseSshHost(settings);
  const connection = new SshConnection(config);
  const tools = { connection, config };
  return {
    driver: sshSiteHost({ live: tools, sandbox: tools }, archiveKey),
    settings,
    config,
    sshd,
    database,
    sitesDir,
    ledger: () => readLedger(path.join(sitesDir, 'ledger.ndjson')),
    loginOf,
    filesDirOf: async (site) => path.join(folderOf(site), 'current/files'),
    fill: async (site, version) => {
      fillFiles(path.join(folderOf(site), 'current/files'), version);
      await database.fill(loginOf(site), version);
    },
    stateOf: async (site) => ({
      page: await pageOf(urlOf(config, site)),
      tree: hashTree(path.join(folderOf(site), 'current/files')),
      database: await database.fingerprint(loginOf(site)),
    }),
    close: async () => {
      await connection.close();
      await web.close();
      await sshd.stop();
      await database.stop();
      if (diskMegabytes !== undefined) execFileSync('umount', ['--lazy', sitesDir]);
      // A site's content may have modes that exclude even its owner.
      spawnSync('chmod', ['-R', 'u+rwx', folder]);
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export const openSshRig = (archiveKey: Buffer, options?: RigOptions): Promise<SshRig> =>
  openRig(archiveKey, startHostPostgres, options);

/** A host over ssh for each database server. `missing` names the programs that this machine lacks for the host. */
export const sshRigs = [
  {
    name: 'ssh with Postgres',
    missing: missingForSshd(['pg_dump', 'pg_restore', 'psql']) || postgresPrograms,
    open: openSshRig,
  },
  {
    name: 'ssh with MariaDB',
    missing: missingForSshd([]) || missingForMariadb(),
    open: (archiveKey: Buffer) => openRig(archiveKey, startHostMariadb),
  },
] as const;

/** A `describe` for one of {@link sshRigs}, which skips its suite if this machine lacks programs. */
export const describeOn = ({ missing }: Pick<(typeof sshRigs)[number], 'missing'>) => describeWith(missing);

const [onPostgres] = sshRigs;

/** {@link describeOn} with Postgres, for suites that need only one database. */
export const describeOnHost = () => describeOn(onPostgres);
