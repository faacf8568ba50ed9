/** @root */
import { spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf } from '../../test/memory-archive';
import { freshFolder, key, packDirectory, removeFolders } from '../../test/trees';
import { asWriteError } from '../format/archive-error';
import { checkSpace, extract } from './extract';

const isRoot = process.getuid?.() === 0;
/** Mounts a folder with hardly any space. Returns null where even root may not mount, as in most containers. */
function mountSmallDisk(): string | null {
  const folder = freshFolder();
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,nr_inodes=20', 'tmpfs', folder]).status === 0
    ? folder
    : null;
}
const smallDisk = isRoot ? mountSmallDisk() : null;
afterAll(() => {
  if (smallDisk !== null) spawnSync('umount', [smallDisk]);
  removeFolders();
});

async function packSome(files = 3): Promise<Awaited<ReturnType<typeof packDirectory>>> {
  const site = freshFolder();
  for (let number = 0; number < files; number += 1) writeFileSync(join(site, `file-${number}`), `content ${number}`);
  return packDirectory(site);
}

test('a target that is not an empty directory is refused', async () => {
  const link = await packSome();
  const folder = freshFolder();
  writeFileSync(join(folder, 'there already'), '');
  symlinkSync(freshFolder(), join(folder, 'link'));
  for (const target of [folder, join(folder, 'link'), join(folder, 'there already')]) {
    expect(await reasonOf(extract({ chain: [link], key, roots: { files: target } }))).toBe('staging_not_empty');
  }
  expect(await reasonOf(extract({ chain: [link], key, roots: { other: freshFolder() } }))).toBe('unknown_root');
});

test('modes do not depend on the umask of the process', async () => {
  const site = freshFolder();
  writeFileSync(join(site, 'open'), '');
  chmodSync(join(site, 'open'), 0o777);
  mkdirSync(join(site, 'shared'));
  chmodSync(join(site, 'shared'), 0o775);
  const link = await packDirectory(site);
  const target = join(freshFolder(), 'target');
  const before = process.umask(0o077);
  try {
    await extract({ chain: [link], key, roots: { files: target } });
  } finally {
    process.umask(before);
  }
  expect(['open', 'shared'].map((name) => statSync(join(target, name)).mode & 0o7777)).toEqual([0o777, 0o775]);
});

const needsRoot = isRoot ? '' : ' (needs root)';
const asRoot = isRoot ? test : test.skip;
asRoot(`everything belongs to the given owner${needsRoot}`, async () => {
  const site = freshFolder();
  mkdirSync(join(site, 'd'));
  writeFileSync(join(site, 'd/file'), 'x');
  symlinkSync('file', join(site, 'd/link'));
  const link = await packDirectory(site);
  const target = join(freshFolder(), 'target');
  await extract({ chain: [link], key, roots: { files: target }, owner: { uid: 1234, gid: 4321 } });
  for (const path of ['d', 'd/file', 'd/link'])
    expect(lstatSync(join(target, path))).toMatchObject({ uid: 1234, gid: 4321 });
});

test('an aborted extraction rejects with the reason of its signal', async () => {
  const link = await packSome();
  const stop = new AbortController();
  const read = link.source.read.bind(link.source);
  link.source.read = async (name) => {
    if (name.startsWith('segment')) stop.abort(new Error('enough'));
    return read(name);
  };
  await expect(
    extract({ chain: [link], key, roots: { files: join(freshFolder(), 't') }, signal: stop.signal }),
  ).rejects.toThrow('enough');
});

test('progress ends at the totals', async () => {
  const seen: unknown[] = [];
  const onProgress = (progress: unknown) => seen.push(progress);
  await extract({ chain: [await packSome()], key, roots: { files: join(freshFolder(), 't') }, onProgress });
  expect(seen.at(-1)).toEqual({ entries: 3, entriesTotal: 3, rawBytes: 27, rawBytesTotal: 27 });
});

test('a target without room is refused before the first write, and ENOSPC becomes no_space', async () => {
  expect(await reasonOf(checkSpace(freshFolder(), Number.MAX_SAFE_INTEGER))).toBe('no_space');
  expect(asWriteError(Object.assign(new Error('full'), { code: 'ENOSPC' })).reason).toBe('no_space');
});

const needsMount = smallDisk === null ? ' (needs root that may mount)' : '';
const itWith = smallDisk === null ? test.skip : test;
itWith(`a file system that fills up while it is written rejects with no_space${needsMount}`, async () => {
  const link = await packSome(100);
  expect(await reasonOf(extract({ chain: [link], key, roots: { files: String(smallDisk) } }))).toBe('no_space');
});
