import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
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

/** The place where a database server keeps its data. */
export interface ServerHome {
  home: string;
  /** Whether the server's account cannot reach the requested folder, so that `home` is elsewhere. */
  isElsewhere: boolean;
}

/**
 * Decides where the data of `folder` is. Below a folder that the server's account cannot enter (a clone in /root), it
 * is in a folder of its own under /var/lib/drydock, whose path is noted in `<folder>/where.txt`: removing `folder`
 * starts afresh.
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

/** The password of the server's own superuser, made once, which only we can read. */
export function settlePassword(passwordFile: string): string {
  if (!fs.existsSync(passwordFile)) {
    const unfinished = `${passwordFile}.${process.pid}`;
    fs.writeFileSync(unfinished, randomBytes(24).toString('base64url'), { mode: 0o600 });
    fs.renameSync(unfinished, passwordFile);
  }
  return fs.readFileSync(passwordFile, 'utf8').trim();
}

/** A socket's path is limited by the kernel: 107 bytes on Linux, 103 on macOS. */
const socketPathBytesMax = 103;

/**
 * Makes the folder of a server's Unix socket and removes leftover sockets, which would keep the server from listening.
 * Call it while no server runs. The folder is `<home>/socket`. If that path is too long for a socket, the folder has a
 * shorter path, which `<home>/socket.txt` records. The path is the same at every start. The folder belongs to the
 * server's account. Every account of this machine may use the socket in it, because jobs run under the accounts of
 * sites. The boxes of applications do not contain it.
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
 * Whether the folder is still ours. In a folder such as /tmp, another account may have taken the name after a cleanup.
 */
function isPrivateFolder(folder: string): boolean {
  const stats = fs.lstatSync(folder, { throwIfNoEntry: false });
  const isOurs = process.getuid?.() === 0 || stats?.uid === process.getuid?.();
  return stats?.isDirectory() === true && isOurs && (stats.mode & 0o022) === 0;
}

/** Removes a server's data, wherever they are, and the folder of its socket, which may have a short path of its own. */
export async function removeServerFolders(folder: string): Promise<void> {
  const { home } = settleHome(folder);
  const note = path.join(home, 'socket.txt');
  const socket = fs.existsSync(note) ? fs.readFileSync(note, 'utf8').trim() : '';
  if (path.basename(socket).startsWith('socket-')) await rm(socket, { recursive: true, force: true });
  await rm(home, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
