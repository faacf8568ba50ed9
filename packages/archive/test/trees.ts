import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ArchiveLimits } from '../src/format/archive-limits';
import { pack } from '../src/pack/pack';
import { directoryRoot, type PackRoot } from '../src/pack/pack-roots';
import type { ArchiveLink } from '../src/read/open-archive';
import { MemoryArchive } from './memory-archive';

export const key = Buffer.alloc(32, 7);
export const createdAt = new Date('2026-02-03T04:05:06.789Z');

const folders: string[] = [];

/** Creates a folder that `removeFolders` removes. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'drydock-archive-'));
  folders.push(folder);
  return folder;
}

export function removeFolders(): void {
  for (const folder of folders.splice(0)) removeFolder(folder);
}

/** Removes a folder. An ordinary user cannot empty a read-only folder, so each folder becomes writable first. */
export function removeFolder(folder: string): void {
  makeWritable(Buffer.from(folder));
  rmSync(folder, { recursive: true });
}

function makeWritable(folder: Buffer): void {
  chmodSync(folder, 0o700);
  for (const name of readdirSync(folder, { encoding: 'buffer' })) {
    const inside = Buffer.concat([folder, Buffer.from('/'), name]);
    if (lstatSync(inside).isDirectory()) makeWritable(inside);
  }
}

/**
 * Returns one line for each path below a directory: mode and time of a directory, target and time of a symlink, and for
 * a file also the number of names and the SHA-256. Times are in microseconds; `describeFully` has nanoseconds.
 */
export function describeTree(directory: string): string[] {
  const names = listNames(directory, '');
  const lines = names.map((path) => {
    const location = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')]);
    const stat = lstatSync(location, { bigint: true });
    const time = stat.mtimeNs / 1000n;
    const mode = (stat.mode & 0o777n).toString(8);
    if (stat.isSymbolicLink()) return `${path} -> ${readlinkSync(location, 'latin1')} ${time}`;
    if (stat.isDirectory()) return `${path}/ ${mode} ${time}`;
    return `${path} ${mode} ${time} ${stat.nlink} ${createHash('sha256').update(readFileSync(location)).digest('hex')}`;
  });
  return lines.sort();
}

function listNames(directory: string, below: string): string[] {
  const location = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(below, 'latin1')]);
  return readdirSync(location, { encoding: 'latin1' }).flatMap((name) => {
    const path = below + name;
    const isDirectory = lstatSync(
      Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')]),
    ).isDirectory();
    return isDirectory ? [path, ...listNames(directory, `${path}/`)] : [path];
  });
}

export interface PackedLink extends ArchiveLink {
  source: MemoryArchive;
}

/** Packs a directory as root `files` into memory: as an increment of the chain `parent`, or as a full archive. */
export async function packDirectory(
  directory: string,
  parent: ArchiveLink[] = [],
  more: PackRoot[] = [],
  { created = createdAt, limits = {} }: { created?: Date; limits?: Partial<ArchiveLimits> } = {},
): Promise<PackedLink> {
  const source = new MemoryArchive();
  const sequence = parent.length + 1;
  const identity = { archiveId: `archive-${sequence}`, siteId: 'site', orgId: 'org', sequence };
  const roots = [directoryRoot('files', directory), ...more];
  const chain = parent.length > 0 && { parent };
  const result = await pack({ roots, sink: source, key, identity, createdAt: created, limits, ...chain });
  return {
    source,
    expected: { archiveId: identity.archiveId, siteId: 'site', orgId: 'org', manifestMac: result.manifestMac },
  };
}
