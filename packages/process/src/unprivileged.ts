import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The account of a server without a customer if this process is root, because database servers refuse to run as root.
 */
const nobody = 65_534;

/** The accounts of clusters that exist once in an installation. Customers' accounts are allocated. */
export const clusterAccounts = { services: 290_000, sites: 290_001 } as const;

/**
 * The folder of root's data if the account `nobody` cannot enter the clone. It survives a reboot, unlike the temporary
 * folder.
 */
export const reachableHome = '/var/lib/drydock';

/** Returns the account for spawning a server: its own if this process is root, otherwise no change. */
export function serverAccount(account: number | null = null): { uid: number; gid: number } | Record<string, never> {
  const uid = account ?? nobody;
  return process.getuid?.() === 0 ? { uid, gid: uid } : {};
}

/** Creates a folder that only the account `nobody` can enter, if this process is root. */
export function makePrivateFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  fs.chmodSync(folder, 0o700);
  const { uid } = serverAccount();
  if (uid !== undefined) fs.chownSync(folder, uid, uid);
}

/**
 * Gives a data folder to its account: a new folder, or one of an earlier version with another account. No process may
 * work in it. chown follows no link, and changes only files of the former owner.
 */
export async function handOver(dataDir: string, account: number | null): Promise<void> {
  const { uid } = serverAccount(account);
  const owner = fs.statSync(dataDir).uid;
  if (uid === undefined || owner === uid) return;
  await run('chown', ['--recursive', '--no-dereference', '-P', `--from=${owner}`, `${uid}:${uid}`, dataDir], {
    env: { PATH: '/usr/bin:/bin' },
  });
}

/** Tells whether the server's account can enter a folder, or the nearest existing parent of a missing one. */
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

/** Creates a folder and its missing parents so that the server's account can enter them, whatever the umask is. */
export function makePassableFolder(folder: string): void {
  const missing: string[] = [];
  for (let at = path.resolve(folder); !fs.existsSync(at); at = path.dirname(at)) missing.push(at);
  fs.mkdirSync(folder, { recursive: true });
  for (const made of missing) fs.chmodSync(made, 0o711);
}
