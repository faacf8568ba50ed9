import { createHash } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { cPath, cString, libc } from '../src/files/libc';
import { fileCallPath } from '../src/format/path-bytes';

/** Sets an attribute on a path. Returns whether the file system accepted the attribute. */
export function setAttribute(location: string | Buffer, name: string, value: Buffer): boolean {
  return libc !== null && libc.lsetxattr(cPath(location), cString(name), value, value.length, 0) === 0;
}

/**
 * Returns one line for each path below a directory, with everything that a restore must bring back. Each character of a
 * name stands for one byte.
 */
export function describeFully(directory: string, skip: ReadonlySet<string> = new Set()): string[] {
  const firstNames = new Map<string, string>();
  const lines: string[] = [];
  const walk = (below: string): void => {
    for (const name of readdirSync(fileCallPath(`${directory}/${below}`), { encoding: 'latin1' }).sort()) {
      const path = below + name;
      if (skip.has(path)) continue;
      const location = fileCallPath(`${directory}/${path}`);
      const stat = lstatSync(location, { bigint: true });
      const inode = `${stat.dev}:${stat.ino}`;
      const shared =
        stat.isDirectory() || stat.nlink === 1n ? '' : ` ${stat.nlink} names, first ${firstNames.get(inode) ?? path}`;
      if (!firstNames.has(inode)) firstNames.set(inode, path);
      const facts = `${(stat.mode & 0o177777n).toString(8)} ${stat.uid}:${stat.gid} ${stat.mtimeNs}${shared}${attributesOf(location)}`;
      lines.push(`${path} ${facts} ${contentOf(location, stat)}`);
      if (stat.isDirectory()) walk(`${path}/`);
    }
  };
  walk('');
  return lines;
}

/**
 * Returns the attributes as the kernel lists them, sorted by name, with values in hex. The label of SELinux is left
 * out, because the machine sets it.
 */
function attributesOf(location: string | Buffer): string {
  if (libc === null || lstatSync(location).isSymbolicLink()) return '';
  const [names, value] = [Buffer.alloc(65_536), Buffer.alloc(65_536)];
  const length = libc.llistxattr(cPath(location), names, names.length);
  if (length <= 0) return '';
  const listed = names
    .toString('latin1', 0, length)
    .split('\0')
    .filter((name) => name !== '' && name !== 'security.selinux');
  const facts = listed.sort().map((name) => {
    const size = libc?.lgetxattr(cPath(location), cString(name), value, value.length) ?? 0;
    return `${name}=${value.toString('hex', 0, Math.max(size, 0))}`;
  });
  return ` ${facts.join(' ')}`;
}

function contentOf(location: string | Buffer, stat: BigIntStats): string {
  if (stat.isSymbolicLink()) return `-> ${readlinkSync(location, 'latin1')}`;
  if (!stat.isFile()) return '';
  return `${stat.size} bytes${stat.blocks * 512n + 65_536n < stat.size ? ' with holes' : ''} ${sha256Of(location)}`;
}

/** Reads in pieces, because a file with holes may be larger than the memory. */
function sha256Of(location: string | Buffer): string {
  const file = openSync(location, constants.O_RDONLY);
  const [digest, piece] = [createHash('sha256'), Buffer.alloc(2 ** 20)];
  try {
    for (let read = readSync(file, piece); read > 0; read = readSync(file, piece))
      digest.update(piece.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return digest.digest('hex');
}
