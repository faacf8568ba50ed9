import type { StdioOptions } from 'node:child_process';
import path from 'node:path';
import type { ProgramDatabase } from '@drydock/agent/site/site-jobs.protocol';
import { bySocket } from '@drydock/postgres/session/session';
import { type BoxRight, spawnInBox } from '@drydock/process/box';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import type { Isolation } from '@drydock/process/isolation';
import { programInBox, programMounts } from '@drydock/process/programs';
import type { JobAccess } from '../database/release-database';

/** Where a box shows the files that it is given. */
const filesInBox = '/site';
const socketInBox = '/database';

export interface SiteProgram {
  isolation: Isolation;
  /** The site's account; null where we are not root. */
  uid: number | null;
  /** Rights over what the box shows that the account has not; none without a box. */
  rights?: readonly BoxRight[];
  /** Our compiled program, by its file's name in this package. */
  program: string;
  /** All that it sees of the machine, besides programs; null: nothing. */
  files: { dir: string; writable: boolean } | null;
  /** Folder of a database's socket, for those of our programs that dump and load; applications never see it. */
  socketFolder?: string | null;
}

/** The path of the files as the program sees it. */
export const filesPathIn = (isolation: Isolation, dir: string): string => (isolation.kind === 'none' ? dir : filesInBox);

/** The database as the program reaches it, by the socket where there is one. */
export function databaseIn(isolation: Isolation, { database, socketFolder }: JobAccess): ProgramDatabase {
  if (isolation.kind === 'none' || socketFolder === null) return database;
  if (database.engine === 'postgres') return { ...database, url: bySocket(database.url, socketInBox) };
  const socketPath = path.join(socketInBox, path.basename(database.login.socketPath));
  return { ...database, login: { ...database.login, socketPath } };
}

/** Buffers of the archive's threads are kept and used again, where the allocator would ask the kernel for each. */
const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '16777216', MALLOC_TRIM_THRESHOLD_: '33554432' };
const env = { PATH: '/usr/local/bin:/usr/bin:/bin', NODE_ENV: 'production', ...allocator };

/**
 * A namespace in which the site's account is all there is: its owner's rights over its files, whatever their modes say, and no right over anything else. So a
 * file that its owner has closed to himself is packed and removed like any other. Where it cannot be had the program runs without.
 */
export const asOwner = [
  '/bin/sh',
  '-c',
  'unshare --user --map-root-user true 2>/dev/null && exec unshare --user --map-root-user "$@"; exec "$@"',
  'drydock-owner',
];

/**
 * Starts one of our programs on a site's content, in a box as the site's account: what the content can make it do reaches that content. Where no box can be made no
 * code of customers runs either, so that nothing changes the files under the program's hands; it then runs as the account alone.
 */
export function startSiteProgram(
  { isolation, uid, rights = [], program, files, socketFolder = null }: SiteProgram,
  stdio: StdioOptions,
): Promise<GuardedChild> {
  const file = path.resolve(__dirname, '../../dist', program);
  if (isolation.kind === 'none') {
    const account = uid === null ? {} : { uid, gid: uid };
    return spawnGuarded(process.execPath, [file], { cwd: '/', env, stdio, signalOnOrphan: 'SIGKILL', ...account });
  }
  return spawnInBox({
    isolation,
    // A namespace of the account's own would take the rights over other accounts' files away.
    command: [...(rights.length > 0 ? [] : asOwner), process.execPath, programInBox(file)],
    env,
    account: uid,
    rights,
    mounts: [
      ...programMounts(),
      ...(files === null ? [] : [{ from: files.dir, to: filesInBox, writable: files.writable }]),
      ...(socketFolder === null ? [] : [{ from: socketFolder, to: socketInBox, writable: false }]),
    ],
    workdir: '/',
    limits: { openFiles: 4096 },
    stdio,
    onOrphan: 'SIGKILL',
  });
}
