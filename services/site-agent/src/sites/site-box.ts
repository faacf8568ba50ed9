import type { StdioOptions } from 'node:child_process';
import path from 'node:path';
import { bySocket } from '@drydock/postgres/session/session';
import { spawnInBox } from '@drydock/process/box';
import { type GuardedChild, spawnGuarded } from '@drydock/process/guarded-child';
import type { Isolation } from '@drydock/process/isolation';
import { programInBox, programMounts } from '@drydock/process/programs';

/** Where a box shows the files that it is given. */
const filesInBox = '/site';
const socketInBox = '/postgres';

export interface SiteProgram {
  isolation: Isolation;
  /** The site's account; null where we are not root. */
  uid: number | null;
  /** Our compiled program, by its file's name in this package. */
  program: string;
  /** All that it sees of the machine, besides programs; null: nothing. */
  files: { dir: string; writable: boolean } | null;
  /** Folder of the sites' Postgres' socket, for those of our programs that dump and load; applications never see it. */
  postgres?: string | null;
}

/** The path of the files as the program sees it. */
export const filesPathIn = (isolation: Isolation, dir: string): string => (isolation.kind === 'none' ? dir : filesInBox);

/** The URL of a database as the program reaches it, by the socket where there is one. */
export const databaseUrlIn = (isolation: Isolation, url: string, postgres: string | null): string =>
  isolation.kind === 'none' || postgres === null ? url : bySocket(url, socketInBox);

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
  { isolation, uid, program, files, postgres = null }: SiteProgram,
  stdio: StdioOptions,
): Promise<GuardedChild> {
  const file = path.resolve(__dirname, '../../dist', program);
  if (isolation.kind === 'none') {
    const account = uid === null ? {} : { uid, gid: uid };
    return spawnGuarded(process.execPath, [file], { cwd: '/', env, stdio, signalOnOrphan: 'SIGKILL', ...account });
  }
  return spawnInBox({
    isolation,
    command: [...asOwner, process.execPath, programInBox(file)],
    env,
    account: uid,
    mounts: [
      ...programMounts(),
      ...(files === null ? [] : [{ from: files.dir, to: filesInBox, writable: files.writable }]),
      ...(postgres === null ? [] : [{ from: postgres, to: socketInBox, writable: false }]),
    ],
    workdir: '/',
    limits: { openFiles: 4096 },
    stdio,
    onOrphan: 'SIGKILL',
  });
}
