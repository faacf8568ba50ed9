import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  lchownSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';

/** A path to make, with its parent folders. Each character of a name stands for one byte. */
export interface PathToMake {
  path: string;
  type: 'file' | 'folder' | 'link' | 'hard' | 'fifo' | 'socket' | 'device';
  content?: Uint8Array | string;
  /** The size of a file with holes, and the pieces between the holes. */
  sparse?: { size: number; pieces: readonly (readonly [at: number, content: string])[] };
  /** The target text of a symlink, or the path whose file a hard link shares. */
  target?: string;
  mode?: number;
  /** Seconds since 1970 in the form of `touch -d @…`. */
  mtime?: string;
  attributes?: readonly (readonly [name: string, value: Uint8Array])[];
  /** The argument of `setfacl -m`. `{uid}` and `{gid}` stand for the account that the tree is made for. */
  accessList?: string;
  owner?: { uid: number; gid: number };
}

export interface Account {
  uid: number;
  gid: number;
}

const isRoot = process.getuid?.() === 0;
const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

/**
 * Makes paths in a folder, and gives them to `account` if the test runs as root. Attributes, modes, access lists and
 * times are set last and in this order, because the other changes would undo them.
 */
export function buildTree(directory: string, paths: readonly PathToMake[], account: Account | null): void {
  const at = (path: string): Buffer =>
    Buffer.concat([bytes(Buffer.from(`${directory}/`).toString('latin1')), bytes(path)]);
  for (const path of paths) make(at, path);
  if (account !== null && isRoot) run('chown', ['-hR', `${account.uid}:${account.gid}`, '.'], directory);
  for (const { path, owner } of paths) if (owner !== undefined && isRoot) lchownSync(at(path), owner.uid, owner.gid);
  giveAttributes(directory, paths);
  for (const { path, type, mode } of [...paths].reverse()) {
    if (mode === undefined || type === 'link') continue;
    // A test that runs as an ordinary user must be able to read the path.
    chmodSync(at(path), isRoot ? mode : mode | (type === 'folder' ? 0o500 : 0o400));
  }
  giveAccessLists(directory, paths, account ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });
  const byTime = new Map<string, string[]>();
  for (const { path, mtime } of paths) if (mtime !== undefined) byTime.set(mtime, [...(byTime.get(mtime) ?? []), path]);
  for (const [mtime, timed] of byTime)
    run('xargs', ['-0', 'touch', '-c', '-h', '-d', `@${mtime}`, '--'], directory, nulTerminated(timed));
}

/** A program that makes a socket. The socket's file stays when the program has ended. */
const bindSocket = 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die';

function make(at: (path: string) => Buffer, { path, type, content = '', sparse, target = '' }: PathToMake): void {
  const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.';
  mkdirSync(at(parent), { recursive: true });
  if (type === 'folder') mkdirSync(at(path), { recursive: true });
  if (type === 'link') symlinkSync(bytes(target), at(path));
  if (type === 'hard') linkSync(at(target), at(path));
  if (type === 'fifo') run('xargs', ['-0', 'mkfifo', '--'], at('').toString(), nulTerminated([path]));
  if (type === 'socket')
    run('xargs', ['-0', 'perl', '-MSocket', '-e', bindSocket, '--'], at('').toString(), nulTerminated([path]));
  if (type === 'device')
    run('xargs', ['-0', 'sh', '-c', 'mknod -- "$1" c 1 3', 'sh'], at('').toString(), nulTerminated([path]));
  if (type !== 'file') return;
  if (sparse === undefined) {
    writeFileSync(at(path), content, { flag: 'wx' });
    return;
  }
  const file = openSync(at(path), 'wx');
  for (const [offset, piece] of sparse.pieces) writeSync(file, piece, offset);
  ftruncateSync(file, sparse.size);
  closeSync(file);
}

const nulTerminated = (paths: readonly string[]): Buffer => bytes(paths.map((path) => `./${path}\0`).join(''));

/** The path as setfattr reads it: bytes that would end a name or begin an escape are in octal. */
const escaped = (path: string): string =>
  path.replaceAll(/[\\\n\r=]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`);

function giveAttributes(directory: string, paths: readonly PathToMake[]): void {
  const stanzas = paths.flatMap(({ path, attributes = [] }) => {
    if (attributes.length === 0) return [];
    const rows = attributes.map(([name, value]) => `${escaped(name)}=0x${Buffer.from(value).toString('hex')}`);
    return [`# file: ./${escaped(path)}\n${rows.join('\n')}\n`];
  });
  if (stanzas.length > 0) run('setfattr', ['-h', '--restore=-'], directory, bytes(stanzas.join('\n')));
}

function giveAccessLists(directory: string, paths: readonly PathToMake[], { uid, gid }: Account): void {
  for (const { path, accessList } of paths) {
    if (accessList === undefined) continue;
    const list = accessList.replaceAll('{uid}', String(uid)).replaceAll('{gid}', String(gid));
    run('xargs', ['-0', 'setfacl', '-m', list, '--'], directory, nulTerminated([path]));
  }
}

function run(program: string, args: readonly string[], cwd: string, input: Buffer = Buffer.alloc(0)): void {
  const { status, stderr, error } = spawnSync(program, args, { cwd, input, env: { ...process.env, LC_ALL: 'C' } });
  if (error !== undefined || status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${error ?? stderr.toString('latin1').slice(0, 500)}`);
}

/** Removes all content of a folder, even if it is deep or its modes deny access. */
export function emptyFolder(directory: string): void {
  run('find', ['.', '-type', 'd', '!', '-perm', '-700', '-exec', 'chmod', 'u+rwx', '{}', '+'], directory);
  run('find', ['.', '-mindepth', '1', '-delete'], directory);
}
