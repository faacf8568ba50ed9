import fs from 'node:fs';
import path from 'node:path';

/** Postgres refuses to run as root, so as root its processes run as nobody. */
const nobody = { uid: 65534, gid: 65534 } as const;

/** Where root keeps what nobody must reach when the clone itself is out of nobody's reach. Durable, unlike the temp directory. */
export const reachableHome = '/var/lib/drydock';

/** The account that servers are spawned under: nobody when we are root, else ourselves (no option at all). */
export function serverAccount(): { uid: number; gid: number } | Record<string, never> {
  return process.getuid?.() === 0 ? nobody : {};
}

/** Makes a folder that the server's account owns alone. Existing folders are handed over too. */
export function makePrivateFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  fs.chmodSync(folder, 0o700);
  if (process.getuid?.() === 0) fs.chownSync(folder, nobody.uid, nobody.gid);
}

/** Whether the server's account can walk down to this folder; of one that is not there yet its nearest ancestor is asked. */
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

/** Makes a folder and its missing parents such that the server's account can walk through, whatever our umask is. */
export function makePassableFolder(folder: string): void {
  const missing: string[] = [];
  for (let at = path.resolve(folder); !fs.existsSync(at); at = path.dirname(at)) missing.push(at);
  fs.mkdirSync(folder, { recursive: true });
  for (const made of missing) fs.chmodSync(made, 0o711);
}
