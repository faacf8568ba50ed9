import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  createWriteStream,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import fs from 'node:fs/promises';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { describeFully, setAttribute } from '../test/full-tree';
import { readIndex } from '../test/read-index';
import { createdAt, describeTree, freshFolder, key, packDirectory, removeFolder, removeFolders } from '../test/trees';
import { extract } from './extract/extract';
import { folderSink, folderSource } from './format/archive-objects';
import { pack } from './pack/pack';
import { directoryRoot, streamRoot } from './pack/pack-roots';
import { exportTar } from './read/export-tar';
import type { ArchiveLink } from './read/open-archive';
import { openEntries } from './read/open-entries';
import { verifyArchive, verifyChain } from './read/verify-archive';

afterAll(removeFolders);

async function restore(chain: ArchiveLink[]): Promise<string> {
  const target = join(freshFolder(), 'target');
  await extract({ chain, key, roots: { files: target } });
  return target;
}

function buildSite(): string {
  const site = freshFolder();
  mkdirSync(join(site, 'a/deep/er'), { recursive: true });
  mkdirSync(join(site, 'empty'));
  writeFileSync(join(site, 'a.txt'), 'sorts around the directory a');
  writeFileSync(join(site, 'a/page.php'), '<?php echo 1;');
  writeFileSync(join(site, 'a/deep/er/big.bin'), randomBytes(9_500_000));
  writeFileSync(join(site, 'a/zero'), '');
  writeFileSync(join(site, 'ü – name.txt'), 'text');
  writeFileSync(Buffer.concat([Buffer.from(`${site}/latin1-`), Buffer.from([0xe9, 0xff])]), 'no UTF-8');
  writeFileSync(join(site, 'private'), 'x', { mode: 0o600 });
  chmodSync(join(site, 'a/page.php'), 0o666);
  symlinkSync('../a.txt', join(site, 'a/up'));
  symlinkSync('a/deep', join(site, 'shortcut'));
  symlinkSync('nowhere', join(site, 'dangling'));
  linkSync(join(site, 'a.txt'), join(site, 'a/deep/same-file'));
  lutimesSync(join(site, 'dangling'), 1_600_000_000.123457, 1_600_000_000.123457);
  utimesSync(join(site, 'a/zero'), 1_500_000_000.654322, 1_500_000_000.654322);
  chmodSync(join(site, 'a/deep/er'), 0o555);
  chmodSync(join(site, 'a'), 0o711);
  utimesSync(join(site, 'a'), 1_400_000_000, 1_400_000_000);
  return site;
}

test('a tree comes back with contents, modes, times, symlinks and hard links', async () => {
  const site = buildSite();
  const link = await packDirectory(site);
  const manifest = await verifyArchive(link.source, key, link.expected, { contents: true });
  expect(manifest.entries).toBe(describeTree(site).length);
  expect(describeTree(await restore([link]))).toEqual(describeTree(site));
});

test('an archive in a folder reads as it was written', async () => {
  const [site, folder] = [buildSite(), freshFolder()];
  const identity = { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 };
  const { manifestMac } = await pack({
    roots: [directoryRoot('files', site)],
    sink: folderSink(folder),
    key,
    identity,
    createdAt,
  });
  const expected = { archiveId: 'one', siteId: 'site', orgId: 'org', manifestMac };
  expect(describeTree(await restore([{ source: folderSource(folder), expected }]))).toEqual(describeTree(site));
});

test('a power cut leaves no manifest without its objects, because they are synced before it', async () => {
  const root = freshFolder();
  const folder = join(root, 'site', 'backup');
  const calls: string[] = [];
  const { rename } = fs;
  const renamed = jest.spyOn(fs, 'rename').mockImplementation(async (from, to) => {
    await rename(from, to);
    calls.push(`rename ${basename(String(to))}`);
  });
  const file = await fs.open(root);
  const handles: Pick<typeof file, 'sync'> & { fd: number } = Object.getPrototypeOf(file);
  await file.close();
  const { sync } = handles;
  const synced = jest.spyOn(handles, 'sync').mockImplementation(async function (this: typeof handles) {
    calls.push(`sync ${readlinkSync(`/proc/self/fd/${this.fd}`)}`);
    await sync.call(this);
  });
  try {
    const identity = { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 };
    await pack({ roots: [directoryRoot('files', buildSite())], sink: folderSink(folder), key, identity, createdAt });
  } finally {
    renamed.mockRestore();
    synced.mockRestore();
  }
  const order = calls.filter((call) => !call.endsWith('.partial'));
  expect(order.filter((call) => call.startsWith('rename segment-')).length).toBeGreaterThan(1);
  expect(order.slice(-3)).toEqual([`sync ${folder}`, 'rename manifest', `sync ${folder}`]);
  // The parents of the new folders are synced too, because a new folder is an entry of its parent.
  expect(order).toEqual(expect.arrayContaining([`sync ${root}`, `sync ${join(root, 'site')}`]));
});

const fileName = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((name) => !/[/\0]/.test(name) && name !== '.' && name !== '..');
const randomTree = fc.dictionary(
  fileName,
  fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.dictionary(fileName, fc.uint8Array({ maxLength: 50 }), { maxKeys: 6 }),
  ),
  {
    maxKeys: 10,
  },
);

/**
 * The seed is fixed, so that the test has the same input before and after a change of the code. `npm run chaos` uses
 * new seeds.
 */
const seeded = {
  seed: Number(process.env['DRYDOCK_SEED'] ?? (process.env['DRYDOCK_TESTS'] === 'chaos' ? Date.now() % 2 ** 31 : 1)),
};

test('any tree comes back as it was', async () => {
  await fc.assert(
    fc.asyncProperty(randomTree, async (tree) => {
      const site = freshFolder();
      writeTree(site, tree);
      const link = await packDirectory(site);
      expect(describeTree(await restore([link]))).toEqual(describeTree(site));
    }),
    { ...seeded, numRuns: 15 },
  );
});

type Tree = { [name: string]: Uint8Array | Tree };
function writeTree(folder: string, tree: Tree): void {
  for (const name of Object.keys(tree)) {
    const content = tree[name];
    const location = join(folder, name);
    if (content instanceof Uint8Array) writeFileSync(location, content);
    else if (content !== undefined) {
      mkdirSync(location);
      writeTree(location, content);
    }
  }
}

test('a chain of increments with changes and deletions equals the live tree', async () => {
  const site = buildSite();
  const full = await packDirectory(site);
  appendFileSync(join(site, 'a/page.php'), 'more');
  removeFolder(join(site, 'a/deep/er'));
  rmSync(join(site, 'shortcut'));
  mkdirSync(join(site, 'shortcut'));
  writeFileSync(join(site, 'shortcut/now-a-directory'), 'x');
  const second = await packDirectory(site, [full]);
  renameSync(join(site, 'a.txt'), join(site, '0.txt'));
  rmSync(join(site, 'empty'), { recursive: true });
  writeFileSync(join(site, 'empty'), 'now a file');
  const third = await packDirectory(site, [full, second]);
  const chain = [full, second, third];
  const manifests = await verifyChain(chain, key, { contents: true });
  expect(manifests.map((manifest) => manifest.raw_bytes < 1000)).toEqual([false, true, true]);
  expect(describeTree(await restore(chain))).toEqual(describeTree(site));
});

test('an increment of an unchanged tree holds no entry', async () => {
  const site = buildSite();
  const full = await packDirectory(site);
  const second = await packDirectory(site, [full]);
  expect((await verifyChain([full, second], key))[1]).toMatchObject({
    entries: 0,
    segments: 0,
    sequence: 2,
    base_id: 'archive-1',
  });
  expect(describeTree(await restore([full, second]))).toEqual(describeTree(site));
});

/** Writes a file with a fixed modification time, like a tool that unpacks an artifact. */
function deploy(location: string, content: string | Buffer): void {
  writeFileSync(location, content);
  utimesSync(location, 1_000_000_000, 1_000_000_000);
}

test('an increment takes a file whose content alone has changed, with its former length and time', async () => {
  const site = freshFolder();
  const large = randomBytes(9_500_000);
  deploy(join(site, 'small'), 'aaaa');
  deploy(join(site, 'same'), 'aaaa');
  deploy(join(site, 'large'), large);
  deploy(join(site, 'same-large'), large);
  const full = await packDirectory(site);
  large.writeUInt8(large.readUInt8(9_499_999) ^ 1, 9_499_999);
  deploy(join(site, 'small'), 'bbbb');
  deploy(join(site, 'large'), large);
  const next = await packDirectory(site, [full]);
  expect((await verifyChain([full, next], key, { contents: true }))[1]).toMatchObject({ entries: 2 });
  const target = await restore([full, next]);
  expect(readFileSync(join(target, 'small'), 'utf8')).toBe('bbbb');
  expect(describeTree(target)).toEqual(describeTree(site));
});

test('an increment reads no file that has not been changed since shortly before its parent', async () => {
  const site = freshFolder();
  deploy(join(site, 'file'), 'aaaa');
  const packAfter = async (created: number): Promise<number | undefined> => {
    const full = await packDirectory(site, [], [], { created: new Date(created) });
    // The file keeps its size and modification time. So the increment has the file only if `pack` has read its content.
    deploy(join(site, 'file'), randomBytes(4));
    return (await verifyChain([full, await packDirectory(site, [full])], key))[1]?.entries;
  };
  const hour = 3_600_000;
  expect(await packAfter(Date.now() + hour)).toBe(0);
  expect(await packAfter(Date.now() + hour / 12)).toBe(1);
});

async function* pieces(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

test('streams of unknown length come back in their order, also when one is left unread', async () => {
  const long = 'row\n'.repeat(3_000_000);
  async function* dump() {
    yield { path: 'schema.sql', content: pieces('create table t', '();') };
    yield { path: 'data/t.copy', content: pieces(long) };
    yield { path: 'after.sql', content: pieces('analyze') };
  }
  const link = await packDirectory(buildSite(), [], [streamRoot('database', dump())]);
  const seen: [string, number, string][] = [];
  for await (const entry of openEntries({ chain: [link], key, root: 'database' })) {
    let text = '';
    if (entry.path !== 'schema.sql') for await (const piece of entry.content()) text += piece.toString();
    seen.push([entry.path, entry.size, text]);
  }
  expect(seen).toEqual([
    ['schema.sql', 17, ''],
    ['data/t.copy', long.length, long],
    ['after.sql', 7, 'analyze'],
  ]);
});

test('tar reads what exportTar writes', async () => {
  const site = buildSite();
  rmSync(Buffer.concat([Buffer.from(`${site}/latin1-`), Buffer.from([0xe9, 0xff])]));
  const full = await packDirectory(site);
  writeFileSync(join(site, 'later'), 'second');
  const second = await packDirectory(site, [full]);
  const folder = freshFolder();
  await exportTar({ chain: [full, second], key }, createWriteStream(join(folder, 'site.tar')));
  expect(spawnSync('tar', ['-xpf', 'site.tar'], { cwd: folder }).status).toBe(0);
  expect(describeTree(join(folder, 'files'))).toEqual(describeTree(site));
});

test('the index lists the newest version of each path with times to the nanosecond', async () => {
  const site = freshFolder();
  writeFileSync(join(site, 'file'), 'one');
  spawnSync('touch', ['-d', '2020-01-01T00:00:00.123456789Z', join(site, 'file')]);
  const link = await packDirectory(site);
  const listed = [];
  for await (const entry of readIndex({ chain: [link], key, root: 'files' })) listed.push(entry);
  expect(listed).toMatchObject([{ path: 'file', size: 3, mtimeSeconds: 1_577_836_800, mtimeNanoseconds: 123_456_789 }]);
});

const bindSocket = 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die';

test('sockets are left out and reported', async () => {
  const site = freshFolder();
  spawnSync('perl', ['-MSocket', '-e', bindSocket, 'socket'], { cwd: site });
  writeFileSync(join(site, 'kept'), 'x');
  const skipped: string[] = [];
  const identity = { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 };
  const sink = { write: async () => undefined };
  const onSkip = ({ path }: { path: string }) => skipped.push(path);
  const result = await pack({ roots: [directoryRoot('files', site)], sink, key, identity, createdAt, onSkip });
  expect(skipped).toEqual(['socket']);
  expect(result).toMatchObject({ entries: 1, skipped: 1 });
});

test('an absolute link that names a release is packed as it is written, and reported', async () => {
  const releases = freshFolder();
  const site = join(releases, 'initial', 'files');
  mkdirSync(site, { recursive: true });
  const other = join(releases, '..', 'elsewhere');
  const links = {
    own: join(site, 'cache'),
    older: join(releases, 'older/files'),
    detour: `${site}/../../x`,
    root: releases,
    relative: 'cache',
    other,
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(site, name));
  const skipped: string[] = [];
  const identity = { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 };
  const onSkip = ({ path, reason }: { path: string; reason: string }) => skipped.push(`${path}: ${reason}`);
  const roots = [directoryRoot('files', site, releases)];
  const result = await pack({ roots, sink: { write: async () => undefined }, key, identity, createdAt, onSkip });
  expect(result.entries).toBe(6);
  expect(skipped.map((line) => line.split(': ')[0])).toEqual(['detour', 'older', 'own']);
  expect(skipped[0]).toContain('leads nowhere after a restore');
});

test('every link comes back as it was, wherever it leads, and nothing is followed', async () => {
  const site = freshFolder();
  const outside = freshFolder();
  writeFileSync(join(outside, 'canary'), 'not mine');
  mkdirSync(join(site, 'a'));
  const links = {
    absolute: outside,
    inside: join(site, 'a'),
    upwards: '../outside',
    'a/detour': '../a/../a',
    dangling: '/nowhere/at/all',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(site, name));
  const link = await packDirectory(site);
  const target = join(freshFolder(), 'target');
  await extract({ chain: [link], key, roots: { files: target } });
  expect(Object.fromEntries(Object.keys(links).map((name) => [name, readlinkSync(join(target, name))]))).toEqual(links);
  const listed = [];
  for await (const entry of readIndex({ chain: [link], key, root: 'files' })) listed.push(entry.path);
  expect(listed).not.toContain('absolute/canary');
});

test('a tree of a thousand folders comes back to its last one', async () => {
  const site = freshFolder();
  const deep = Array(1000).fill('d').join('/');
  mkdirSync(join(site, deep), { recursive: true });
  writeFileSync(join(site, deep, 'bottom'), 'deep');
  const link = await packDirectory(site);
  const target = join(freshFolder(), 'target');
  await extract({ chain: [link], key, roots: { files: target } });
  expect(readFileSync(join(target, deep, 'bottom'), 'utf8')).toBe('deep');
});

/**
 * Creates a deep path with a file, a hard link and a symlink at its end. Perl enters one directory after another,
 * because no system call accepts the whole path. The shell's `cd` would use the whole path.
 */
function makeDeep(site: string, name: string, depth: number): void {
  const script = `for (1..$ARGV[1]) { mkdir $ARGV[0] or die; chdir $ARGV[0] or die } exec '/bin/sh', '-c', 'echo deep >bottom; ln bottom second; ln -s bottom link; touch -d @1500000000.123456789 bottom'`;
  expect(spawnSync('perl', ['-e', script, name, String(depth)], { cwd: site }).status).toBe(0);
}

/**
 * Describes the files at the end of a deep path: the number of hard links and the mtime of the file, the target of the
 * symlink, and the content.
 */
function readDeep(site: string, name: string, depth: number): string {
  const script = `for (1..$ARGV[1]) { chdir $ARGV[0] or die } exec '/bin/sh', '-c', "stat -c '%h %.9Y' bottom; readlink link; cat second"`;
  return spawnSync('perl', ['-e', script, name, String(depth)], { cwd: site }).stdout.toString();
}

test.each([
  ['a path of 25,000 bytes', 'n'.repeat(249), 100],
  ['a tree of 2,500 folders', 'd', 2500],
])('%s comes back, and its increment too', async (_what, name, depth) => {
  const site = freshFolder();
  makeDeep(site, name, depth);
  const full = await packDirectory(site);
  writeFileSync(join(site, 'later'), 'x');
  const next = await packDirectory(site, [full]);
  const target = await restore([full, next]);
  expect(readDeep(target, name, depth)).toBe('2 1500000000.123456789\nbottom\ndeep\n');
  expect([...next.source.objects.values()].reduce((sum, { length }) => sum + length, 0)).toBeLessThan(8192);
  for (const folder of [site, target]) spawnSync('rm', ['-rf', join(folder, name)]);
});

/** Packs a tree without storing the archive. Returns what `pack` reports. */
async function packNowhere(site: string): Promise<{ entries: number; skipped: { path: string; reason: string }[] }> {
  const skipped: { path: string; reason: string }[] = [];
  const identity = { archiveId: 'one', siteId: 'site', orgId: 'org', sequence: 1 };
  const sink = { write: async () => undefined };
  const roots = [directoryRoot('files', site)];
  const { entries } = await pack({ roots, sink, key, identity, createdAt, onSkip: (path) => skipped.push(path) });
  return { entries, skipped };
}

test('a path longer than the format takes is left out and reported, and everything else is packed', async () => {
  const site = freshFolder();
  const name = 'n'.repeat(249);
  makeDeep(site, name, 263);
  writeFileSync(join(site, 'kept'), 'x');
  const { entries, skipped } = await packNowhere(site);
  spawnSync('rm', ['-rf', join(site, name)]);
  expect(skipped).toEqual([{ path: Array(263).fill(name).join('/'), reason: 'path too long' }]);
  expect(entries).toBe(263);
});

/** Encodes an access list for the kernel: rows of tag, rights and account. */
function accessList(...rows: [tag: number, rights: number, id: number][]): Buffer {
  const list = Buffer.alloc(4 + 8 * rows.length);
  list.writeUInt32LE(2);
  for (const [at, [tag, rights, id]] of rows.entries()) {
    list.writeUInt16LE(tag, 4 + 8 * at);
    list.writeUInt16LE(rights, 6 + 8 * at);
    list.writeUInt32LE(id, 8 + 8 * at);
  }
  return list;
}

const nobody = 0xffffffff;
const sharedList = accessList(
  [1, 7, nobody],
  [2, 5, process.getuid?.() ?? 0],
  [4, 0, nobody],
  [16, 5, nobody],
  [32, 0, nobody],
);

function buildAttributes(site: string): void {
  mkdirSync(join(site, 'shared'));
  writeFileSync(join(site, 'plain'), 'x');
  writeFileSync(join(site, 'listed'), 'x');
  writeFileSync(join(site, 'closed'), 'x');
  writeFileSync(Buffer.concat([Buffer.from(join(site, 'name-')), Buffer.from([0xe9])]), 'x');
  const given = [
    setAttribute(join(site, 'plain'), 'user.comment', Buffer.from([0, 255, 10])),
    setAttribute(join(site, 'plain'), 'user.empty', Buffer.alloc(0)),
    setAttribute(join(site, 'closed'), 'user.mime', Buffer.from('text/plain')),
    setAttribute(
      Buffer.concat([Buffer.from(join(site, 'name-')), Buffer.from([0xe9])]),
      'user.\u00ff',
      Buffer.alloc(1500, 7),
    ),
    setAttribute(join(site, 'shared'), 'user.folder', Buffer.from('yes')),
    setAttribute(join(site, 'listed'), 'system.posix_acl_access', sharedList),
    setAttribute(join(site, 'shared'), 'system.posix_acl_access', sharedList),
    setAttribute(join(site, 'shared'), 'system.posix_acl_default', sharedList),
  ];
  expect(given).toEqual(given.map(() => true));
  chmodSync(join(site, 'closed'), 0o400);
  chmodSync(join(site, 'shared'), 0o3775);
  utimesSync(join(site, 'plain'), 1.5, -1_000_000.25);
}

test('extended attributes, access lists, sticky folders and nanoseconds come back', async () => {
  const site = freshFolder();
  buildAttributes(site);
  expect(describeFully(await restore([await packDirectory(site)]))).toEqual(describeFully(site));
});

test('an increment takes a path whose attributes alone have changed', async () => {
  const site = freshFolder();
  buildAttributes(site);
  const full = await packDirectory(site);
  setAttribute(join(site, 'plain'), 'user.comment', Buffer.from('another'));
  setAttribute(join(site, 'shared'), 'user.folder', Buffer.from('no'));
  const next = await packDirectory(site, [full]);
  expect(describeFully(await restore([full, next]))).toEqual(describeFully(site));
});

test('the parts of a path that an archive does not keep are reported, and the path is kept', async () => {
  const site = freshFolder();
  writeFileSync(join(site, 'able'), 'x');
  const isAble = setAttribute(
    join(site, 'able'),
    'security.capability',
    Buffer.from('0100000200040000000000000000000000000000', 'hex'),
  );
  const { entries, skipped } = await packNowhere(site);
  const able = isAble ? [{ path: 'able', reason: 'its file capabilities were left out' }] : [];
  expect(skipped).toEqual(able);
  expect(entries).toBe(1);
});

/** Creates FIFOs, files with set-id and sticky bits, and links and FIFOs with several names. */
function buildSpecial(site: string): void {
  for (const mode of [0o4755, 0o2711, 0o1644]) {
    writeFileSync(join(site, mode.toString(8)), 'x');
    chmodSync(join(site, mode.toString(8)), mode);
  }
  spawnSync('mkfifo', ['-m', '622', join(site, 'fifo')]);
  linkSync(join(site, 'fifo'), join(site, 'same-fifo'));
  setAttribute(join(site, 'fifo'), 'system.posix_acl_access', sharedList);
  symlinkSync('fifo', join(site, 'link'));
  linkSync(join(site, 'link'), join(site, 'same-link'));
}

test('FIFOs, set-id bits, and links with several names come back', async () => {
  const site = freshFolder();
  buildSpecial(site);
  const full = await packDirectory(site);
  expect(describeFully(await restore([full]))).toEqual(describeFully(site));
  rmSync(join(site, 'link'));
  symlinkSync('other', join(site, 'link'));
  const next = await packDirectory(site, [full]);
  expect(describeFully(await restore([full, next]))).toEqual(describeFully(site));
});

test('only what older readers cannot read makes an archive of version 3 or 4', async () => {
  const site = freshFolder();
  buildAttributes(site);
  const versionOf = async (): Promise<number> => {
    const { source, expected } = await packDirectory(site);
    return (await verifyArchive(source, key, expected)).format_version;
  };
  expect(await versionOf()).toBe(3);
  chmodSync(join(site, 'shared'), 0o2775);
  expect(await versionOf()).toBe(2);
  buildSpecial(site);
  expect(await versionOf()).toBe(4);
});

test('holes stay holes, and the set-group-id of folders stays', async () => {
  const site = freshFolder();
  const file = openSync(join(site, 'sparse'), 'w');
  ftruncateSync(file, 300_000_000);
  writeSync(file, 'in the middle', 150_000_123);
  closeSync(file);
  mkdirSync(join(site, 'group'));
  chmodSync(join(site, 'group'), 0o2775);
  const link = await packDirectory(site);
  const target = join(freshFolder(), 'target');
  await extract({ chain: [link], key, roots: { files: target } });
  const [before, after] = [site, target].map((folder) => statSync(join(folder, 'sparse')));
  expect(after?.size).toBe(before?.size);
  expect(after?.blocks).toBeLessThanOrEqual((before?.blocks ?? 0) + 16);
  expect(statSync(join(target, 'group')).mode & 0o7777).toBe(0o2775);
});

test('a file that changes while it is packed is recorded as it was read', async () => {
  const site = freshFolder();
  const log = join(site, 'growing.log');
  writeFileSync(log, Buffer.alloc(20_000_000, 'a'));
  const growing = setInterval(() => appendFileSync(log, 'b'.repeat(1000)), 1);
  try {
    const link = await packDirectory(site);
    await expect(verifyArchive(link.source, key, link.expected, { contents: true })).resolves.toMatchObject({
      entries: 1,
    });
  } finally {
    clearInterval(growing);
  }
});
