import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { isReachable, makePassableFolder, reachableHome } from './unprivileged';

/** Where one embedded Postgres keeps its things. `<home>/<major>` is the data directory, so that majors can stand side by side. */
export interface PostgresFolder {
  home: string;
  dataDir: string;
  passwordFile: string;
  /** True when the asked-for folder cannot be reached by the server's account and `home` had to be elsewhere. */
  isElsewhere: boolean;
}

/**
 * Settles where the data of `folder` lives. Below a folder that the server's account cannot walk through (a clone in /root), the home
 * is a folder of its own under /var/lib/drydock, whose path is noted in `<folder>/where.txt`: removing `folder` starts afresh.
 */
export function settlePostgresFolder(folder: string, major: number): PostgresFolder {
  makePassableFolder(folder);
  const isElsewhere = !isReachable(folder);
  const home = isElsewhere ? findElsewhere(folder) : fs.realpathSync(folder);
  return { home, dataDir: path.join(home, String(major)), passwordFile: path.join(home, 'password'), isElsewhere };
}

/** The superuser's password of this folder: made once, readable by us alone. */
export function settlePassword(passwordFile: string): string {
  if (!fs.existsSync(passwordFile)) {
    const unfinished = `${passwordFile}.${process.pid}`;
    fs.writeFileSync(unfinished, randomBytes(24).toString('base64url'), { mode: 0o600 });
    fs.renameSync(unfinished, passwordFile);
  }
  return fs.readFileSync(passwordFile, 'utf8').trim();
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
