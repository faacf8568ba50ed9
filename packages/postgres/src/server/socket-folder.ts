import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makePassableFolder, reachableHome, serverAccount } from './unprivileged';

/** A socket's path is limited by the kernel: 107 bytes on Linux, 103 on macOS. The longest name of a socket of Postgres comes after the folder. */
const folderBytesMax = 103 - '/.s.PGSQL.65535'.length;

/**
 * Settles the folder of a server's Unix socket: `<home>/socket`, or where that path is too long a short one, which `<home>/socket.txt` names. It is the same at every start. It
 * belongs to the server's account. Others on this machine may use the socket in it, which jobs need that have an account of a site; the boxes of applications do not show it.
 */
export function settleSocketFolder(home: string, account: number | null): string {
  const near = path.join(home, 'socket');
  const folder = Buffer.byteLength(near) <= folderBytesMax ? near : findShort(path.join(home, 'socket.txt'));
  fs.mkdirSync(folder, { recursive: true, mode: 0o711 });
  fs.chmodSync(folder, 0o711);
  const { uid } = serverAccount(account);
  if (uid !== undefined) fs.chownSync(folder, uid, uid);
  // No server runs: what a killed one has left would keep the next from listening.
  for (const name of fs.readdirSync(folder)) if (name.startsWith('.s.PGSQL.')) fs.unlinkSync(path.join(folder, name));
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

/** In a folder for everybody, as /tmp is, anybody can have taken the name of one that was cleared away. */
function isPrivateFolder(folder: string): boolean {
  const stats = fs.lstatSync(folder, { throwIfNoEntry: false });
  const isOurs = process.getuid?.() === 0 || stats?.uid === process.getuid?.();
  return stats?.isDirectory() === true && isOurs && (stats.mode & 0o022) === 0;
}

/**
 * Rules of who may enter a cluster that is reached by its Unix socket only, in the form of pg_hba.conf: everybody proves a password there. A server that listens on a port all
 * the same, because somebody else configured it, turns everybody away at it.
 */
export const socketOnlyRules = [
  '# type  database     user  address  method',
  'host    all          all   all      reject',
  'local   replication  all            reject',
  'local   all          all            scram-sha-256',
  '',
].join('\n');
