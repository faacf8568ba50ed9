import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { MemoryArchive } from '../../test/memory-archive';
import { extract } from '../extract/extract';
import { pack } from '../pack/pack';
import { directoryRoot } from '../pack/pack-roots';
import { type ArchiveLink, deriveKeysOf } from '../read/open-archive';
import { verifyChain } from '../read/verify-archive';
import { type ArchiveKey, type DerivedKeys, decodeKeys, deriveKeys, encodeKeys, type RootKey } from './archive-keys';

const archiveKey = randomBytes(32);
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-keys-'));
  await mkdir(path.join(folder, 'live'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Packs the folder `live` with only the keys of this archive and its parents. */
async function packAs(
  archiveId: string,
  sequence: number,
  parents: ArchiveLink[],
  root: RootKey = archiveKey,
): Promise<ArchiveLink & { keys: DerivedKeys }> {
  const source = new MemoryArchive();
  const keys = decodeKeys(encodeKeys(deriveKeys(root, randomBytes(16), archiveId)));
  const ofParents = await Promise.all(parents.map((parent) => deriveKeysOf(parent, root)));
  const identity = { archiveId, siteId: 'site', orgId: 'org', sequence };
  const { manifestMac } = await pack({
    roots: [directoryRoot('files', path.join(folder, 'live'))],
    sink: source,
    key: [...ofParents, keys],
    identity,
    createdAt: new Date(),
    ...(parents.length > 0 && { parent: parents }),
  });
  return { source, expected: { archiveId, siteId: 'site', orgId: 'org', manifestMac }, keys };
}

test('a chain is packed and restored with derived keys, and restored with the archive key too', async () => {
  await writeFile(path.join(folder, 'live', 'a.txt'), 'one');
  const full = await packAs('full', 1, []);
  await writeFile(path.join(folder, 'live', 'b.txt'), 'two');
  const next = await packAs('next', 2, [full]);
  const restore = async (key: ArchiveKey, name: string): Promise<string> => {
    const target = path.join(folder, name);
    await extract({ chain: [full, next], key, roots: { files: target } });
    return (await readFile(path.join(target, 'a.txt'), 'utf8')) + (await readFile(path.join(target, 'b.txt'), 'utf8'));
  };
  expect(await restore([full.keys, next.keys], 'derived')).toBe('onetwo');
  expect(await restore(archiveKey, 'whole')).toBe('onetwo');
  await verifyChain([full, next], archiveKey, { contents: true });
});

test('derived keys open no other archive, not even another packing of the same archive id', async () => {
  const [one, other] = [await packAs('one', 1, []), await packAs('other', 1, [])];
  const again = await packAs('one', 1, []);
  await expect(verifyChain([other], [one.keys])).rejects.toMatchObject({ reason: 'wrong_key' });
  await expect(verifyChain([again], [one.keys])).rejects.toMatchObject({ reason: 'wrong_key' });
  await expect(verifyChain([one], [{ ...other.keys, salt: one.keys.salt }])).rejects.toMatchObject({
    reason: 'wrong_key',
  });
});

test('during a rotation, new archives of a chain get the new key, and older ones open with the old key', async () => {
  const [before, after] = [archiveKey, randomBytes(32)];
  await writeFile(path.join(folder, 'live', 'a.txt'), 'one');
  const full = await packAs('full', 1, [], [before, after]);
  await writeFile(path.join(folder, 'live', 'b.txt'), 'two');
  const next = await packAs('next', 2, [full], [after, before]);
  await verifyChain([full], before, { contents: true });
  for (const key of [before, after, [after, randomBytes(32)] as const])
    await expect(verifyChain([full, next], key)).rejects.toMatchObject({ reason: 'wrong_key' });
  for (const key of [
    [after, before],
    [before, after],
  ] as const) {
    const target = path.join(folder, key[0] === after ? 'after' : 'before');
    await extract({ chain: [full, next], key, roots: { files: target } });
    expect(await readFile(path.join(target, 'b.txt'), 'utf8')).toBe('two');
  }
  const source = new MemoryArchive();
  const identity = { archiveId: 'whole', siteId: 'site', orgId: 'org', sequence: 3 };
  const options = {
    roots: [directoryRoot('files', path.join(folder, 'live'))],
    sink: source,
    identity,
    createdAt: new Date(),
  };
  const { manifestMac } = await pack({ ...options, key: [after, before], parent: [full, next] });
  const last = { source, expected: { archiveId: 'whole', siteId: 'site', orgId: 'org', manifestMac } };
  await verifyChain([full, next, last], [after, before], { contents: true });
});
