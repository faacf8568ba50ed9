import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Database servers refuse to run as root. If we are root, a server without a tenant, such as a test's, runs as nobody.
 */
const nobody = 65_534;

/** The accounts of clusters that an installation has only one of. Those of tenants are allocated. */
export const clusterAccounts = { services: 290_000, sites: 290_001 } as const;

/** The folder for root's data if nobody's account cannot enter the clone. It is durable, unlike the temp directory. */
export const reachableHome = '/var/lib/drydock';

/** The account that a server is spawned under: its own when we are root, otherwise ours (no option at all). */
export function serverAccount(account: number | null = null): { uid: number; gid: number } | Record<string, never> {
  const uid = account ?? nobody;
  return process.getuid?.() === 0 ? { uid, gid: uid } : {};
}

/** Makes a folder that only nobody's account can enter, if we are root. */
export function makePrivateFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  fs.chmodSync(folder, 0o700);
  const { uid } = serverAccount();
  if (uid !== undefined) fs.chownSync(folder, uid, uid);
}

/**
 * Gives a data folder to its account: a new folder, or one that had another account under an earlier version. No
 * process may work in it. chown walks by descriptors and follows no link; only files of the former owner change hands.
 */
export async function handOver(dataDir: string, account: number | null): Promise<void> {
  const { uid } = serverAccount(account);
  const owner = fs.statSync(dataDir).uid;
  if (uid === undefined || owner === uid) return;
  await run('chown', ['--recursive', '--no-dereference', '-P', `--from=${owner}`, `${uid}:${uid}`, dataDir], {
    env: { PATH: '/usr/bin:/bin' },
  });
}

/**
 * Whether the server's account can enter this folder; for a folder that does not exist, its nearest ancestor is
 * checked.
 */
export function isReachable(folder: string): boolean {
  if (process.getuid?.() !== 0) return true;
  let at = path.resolve(folder);
  while (!fs.existsSync(at)) at = path.dirname(at);
  at = fs.realpathSync(at);
  for (; ; at = path.dirname(at)) {
    if ((fs.statSync(at).mode & 0o001) === 0) return false;
    if (at === path.dirname(at)) return true;
  }
}

/** Makes a folder and its missing parents so that the server's account can enter them, whatever our umask is. */
export function makePassableFolder(folder: string): void {
  const missing: string[] = [];
  for (let at = path.resolve(folder); !fs.existsSync(at); at = path.dirname(at)) missing.push(at);
  fs.mkdirSync(folder, { recursive: true });
  for (const made of missing) fs.chmodSync(made, 0o711);
}
