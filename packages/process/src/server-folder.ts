import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The account of a server that root starts without another account. Database servers refuse to run as root. */
const nobody = 65_534;

/** The uids of an installation's own two Postgres clusters. The uids of customers' servers are allocated. */
export const clusterAccounts = { services: 290_000, sites: 290_001 } as const;

/**
 * The folder for the data of servers that root starts, if their account cannot enter the requested folder. This folder
 * survives a reboot, unlike the temporary folder.
 */
export const reachableHome = '/var/lib/drydock';

/** Returns the account for spawning a server. If this process is not root, the account does not change. */
export function serverAccount(account: number | null = null): { uid: number; gid: number } | Record<string, never> {
  const uid = account ?? nobody;
  return process.getuid?.() === 0 ? { uid, gid: uid } : {};
}

/**
 * Creates a folder that only its owner can enter. The owner is this process's account, or `nobody` if this process is
 * root.
 */
export function makePrivateFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  fs.chmodSync(folder, 0o700);
  const { uid } = serverAccount();
  if (uid !== undefined) fs.chownSync(folder, uid, uid);
}

/**
 * Changes the owner of a data folder to the server's account. The folder is new, or belongs to a former account of the
 * server. No process may work in it. chown follows no link, and changes only files of the former owner.
 */
export async function handOver(dataDir: string, account: number | null): Promise<void> {
  const { uid } = serverAccount(account);
  const owner = fs.statSync(dataDir).uid;
  if (uid === undefined || owner === uid) return;
  await run('chown', ['--recursive', '--no-dereference', '-P', `--from=${owner}`, `${uid}:${uid}`, dataDir], {
    env: { PATH: '/usr/bin:/bin' },
  });
}

/** Tells whether the server's account can enter a folder, or the nearest existing parent of a missing folder. */
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

/** The folder of a database server's data. */
export interface ServerHome {
  home: string;
  /** True if the server's account cannot enter the requested folder, so that `home` is elsewhere. */
  isElsewhere: boolean;
}

/**
 * Decides where the data of `folder` is. If the server's account cannot enter the folder, as in a clone below /root,
 * the data is below /var/lib/drydock, and `<folder>/where.txt` has its path. If `folder` is removed, the path is lost
 * and the next start begins with empty data.
 */
export function settleHome(folder: string): ServerHome {
  makePassableFolder(folder);
  const isElsewhere = !isReachable(folder);
  return { home: isElsewhere ? findElsewhere(folder) : fs.realpathSync(folder), isElsewhere };
}

function findElsewhere(folder: string): string {
  const note = path.join(folder, 'where.txt');
  if (fs.existsSync(note)) {
    const home = fs.readFileSync(note, 'utf8').trim();
    if (fs.existsSync(home)) return home;
  }
  makePassableFolder(reachableHome);
  const home = fs.mkdtempSync(path.join(reachableHome, `${path.basename(folder)}-`));
  fs.chmodSync(home, 0o711);
  fs.writeFileSync(note, `${home}\n`, { mode: 0o600 });
  return home;
}

/**
 * Returns the superuser's password, which is generated once. Only this process's account can read the password file.
 */
export function settlePassword(passwordFile: string): string {
  if (!fs.existsSync(passwordFile)) {
    const unfinished = `${passwordFile}.${process.pid}`;
    fs.writeFileSync(unfinished, randomBytes(24).toString('base64url'), { mode: 0o600 });
    fs.renameSync(unfinished, passwordFile);
  }
  return fs.readFileSync(passwordFile, 'utf8').trim();
}

/** The kernel's limit for a socket's path is 107 bytes on Linux and 103 on macOS. The lower one is used everywhere. */
const socketPathBytesMax = 103;

/**
 * Creates the folder of a server's Unix socket, and removes leftover sockets, which would keep the server from
 * listening. The server must not be running. The folder is `<home>/socket`, or a shorter path that `<home>/socket.txt`
 * records. Every account may use the socket, because jobs run under sites' accounts. Applications cannot reach it,
 * because their boxes do not show the folder.
 * @param names the longest name of a socket in the folder, and the prefix of all names
 */
export function settleSocketFolder(
  home: string,
  account: number | null,
  names: { longest: string; prefix: string },
): string {
  const near = path.join(home, 'socket');
  const isShort = Buffer.byteLength(near) + names.longest.length < socketPathBytesMax;
  const folder = isShort ? near : findShort(path.join(home, 'socket.txt'));
  fs.mkdirSync(folder, { recursive: true, mode: 0o711 });
  fs.chmodSync(folder, 0o711);
  const { uid } = serverAccount(account);
  if (uid !== undefined) fs.chownSync(folder, uid, uid);
  for (const name of fs.readdirSync(folder)) if (name.startsWith(names.prefix)) fs.unlinkSync(path.join(folder, name));
  return folder;
}

function findShort(note: string): string {
  if (fs.existsSync(note)) {
    const noted = fs.readFileSync(note, 'utf8').trim();
    if (isPrivateFolder(noted)) return noted;
  }
  const isRoot = process.getuid?.() === 0;
  if (isRoot) makePassableFolder(reachableHome);
  const made = fs.mkdtempSync(path.join(isRoot ? reachableHome : os.tmpdir(), 'socket-'));
  fs.writeFileSync(note, `${made}\n`, { mode: 0o600 });
  return made;
}

/**
 * Tells whether only its owner can write the folder. Unless this process is root, the owner must be this process's
 * account: in a folder such as /tmp, another account may have taken the name after a cleanup.
 */
function isPrivateFolder(folder: string): boolean {
  const stats = fs.lstatSync(folder, { throwIfNoEntry: false });
  const isOurs = process.getuid?.() === 0 || stats?.uid === process.getuid?.();
  return stats?.isDirectory() === true && isOurs && (stats.mode & 0o022) === 0;
}

/** Removes a server's data and the folder of its socket, wherever they are. */
export async function removeServerFolders(folder: string): Promise<void> {
  const { home } = settleHome(folder);
  const note = path.join(home, 'socket.txt');
  const socket = fs.existsSync(note) ? fs.readFileSync(note, 'utf8').trim() : '';
  if (path.basename(socket).startsWith('socket-')) await rm(socket, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
