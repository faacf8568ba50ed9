import type { StdioOptions } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { ProgramDatabase } from '@drydock/agent/site';
import { bySocket } from '@drydock/postgres';
import {
  type BoxRight,
  type GuardedChild,
  type Isolation,
  programInBox,
  programMounts,
  spawnGuarded,
  spawnInBox,
} from '@drydock/process';
import type { JobAccess } from '../database/release-database';

const filesInBox = '/site';
const socketInBox = '/database';

export interface SiteProgram {
  isolation: Isolation;
  /** The site's account. Null if this process is not root. */
  uid: number | null;
  /** Additional rights over the files in the box. Without a box they are not given. */
  rights?: readonly BoxRight[];
  /** The path of a compiled program of this package, below dist/. */
  program: string;
  /**
   * The folder that the box shows to the program, besides the programs and the socket. Null if the program needs none.
   */
  files: { dir: string; writable: boolean } | null;
  /** The folder of a database's socket, for the programs that dump and load. An application's box never shows it. */
  socketFolder?: string | null;
}

export const filesPathIn = (isolation: Isolation, dir: string): string =>
  isolation.kind === 'none' ? dir : filesInBox;

/**
 * Returns the database as the program reaches it. In a box with a database socket, the socket's path is that inside the
 * box.
 */
export function databaseIn(isolation: Isolation, { database, socketFolder }: JobAccess): ProgramDatabase {
  if (isolation.kind === 'none' || socketFolder === null) return database;
  if (database.engine === 'postgres') return { ...database, url: bySocket(database.url, socketInBox) };
  const socketPath = path.join(socketInBox, path.basename(database.login.socketPath));
  return { ...database, login: { ...database.login, socketPath } };
}

/**
 * Makes the memory allocator reuse the buffers of the archive's threads, instead of requesting each from the kernel.
 */
const allocator = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '16777216', MALLOC_TRIM_THRESHOLD_: '33554432' };
const env = { PATH: '/usr/local/bin:/usr/bin:/bin', NODE_ENV: 'production', ...allocator };

/**
 * A command that runs a program in a user namespace with only the site's account. There the program has an owner's
 * rights over the account's files, whatever their modes are, and no rights over anything else. So it can pack and
 * remove a file whose mode excludes its own owner. Without namespaces the program runs without these rights.
 */
export const asOwner = [
  '/bin/sh',
  '-c',
  'unshare --user --map-root-user true 2>/dev/null && exec unshare --user --map-root-user "$@"; exec "$@"',
  'drydock-owner',
];

/**
 * Starts a program of this package on a site's content. It runs as the account `uid` and, where boxes can be made, in a
 * box, so that hostile content can reach nothing else.
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
    // With `asOwner`, the program would lose the rights over other accounts' files.
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

const countMs = 60_000;
/**
 * A tree counts as at least this many bytes for each file, folder and link. Empty files take no bytes, but the number
 * of files that a file system can hold is limited too.
 */
const entryBytes = 4_096;
/** Prints the bytes on disk, and then the number of files, folders and links. */
const countScript = 'du -s -x -B1 "$1"; du -s -x --inodes "$1"';

interface TreeCount extends Pick<SiteProgram, 'isolation' | 'uid'> {
  watch?(child: GuardedChild): void;
}

/**
 * Counts the bytes that a tree takes on disk. Resolves with null if they cannot be counted. A child walks the tree, in
 * a box where one can be made, because this process must not follow a path inside a site.
 */
export async function countTree({ isolation, uid, watch }: TreeCount, dir: string): Promise<number | null> {
  const countIn = (folder: string): [string, ...string[]] => ['/bin/sh', '-c', countScript, 'count', folder];
  const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore'];
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };
  const [program, ...args] = countIn(dir);
  const child =
    isolation.kind === 'none'
      ? await spawnGuarded(program, args, { env, stdio, cwd: '/', signalOnOrphan: 'SIGKILL', isWrapper: true })
      : await spawnInBox({
          isolation,
          // The child has an owner's rights, so it also counts folders that the site's account cannot enter.
          command: [...asOwner, ...countIn(filesInBox)],
          env,
          account: uid,
          mounts: [{ from: dir, to: filesInBox, writable: false }],
          workdir: '/',
          limits: { openFiles: 256, memoryBytes: 2 ** 28 },
          stdio,
          onOrphan: 'SIGKILL',
        });
  watch?.(child);
  const timer = setTimeout(() => void child.stop('SIGKILL', 0), countMs);
  try {
    const { stdout } = child.process;
    const [told] = await Promise.all([stdout === null ? '' : text(stdout), child.exited]);
    // `du` fails if a file is removed while it counts, but still prints the size of the rest.
    const [, bytes, entries] = /^(\d+)\t.*\n(\d+)\t/.exec(told) ?? [];
    return bytes === undefined ? null : Math.max(Number(bytes), Number(entries) * entryBytes);
  } finally {
    clearTimeout(timer);
  }
}
