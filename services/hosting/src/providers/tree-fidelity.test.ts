/**
 * Backs up and restores trees of files on a local host and on a host over ssh: paths of every kind, the files of real
 * programs, and random trees. If the test runs as root, the trees also have devices and foreign owners.
 *
 * @tier long
 * @processes
 * @root
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import { sampleOf } from '@drydock/testing/seeded-random';
import { skipTests } from '@drydock/testing/skipped';
import fc from 'fast-check';
import { openLocalRig, type SiteHostRig } from '../../test/site-host-rig';
import { sshRigs } from '../../test/ssh-host';
import { buildTree, type PathToMake } from '../../test/trees/build-tree';
import { generatedTrees } from '../../test/trees/generated-tree';
import { nastyTree } from '../../test/trees/nasty-tree';
import { differences, missingForTrees, readTree, type Tree } from '../../test/trees/read-tree';
import { copyTree, missingTree, realTrees } from '../../test/trees/real-trees';
import { type Account, throughHost } from '../../test/trees/through-host';
import { localBackupStorage } from './backup-storage.local';

/*
 * A restore brings back every property of every path, as find, sha256sum, getfattr and getfacl read it. `kept` has the
 * exceptions; docs/what-a-backup-keeps.md explains them.
 */

const isRoot = process.getuid?.() === 0;
jest.setTimeout(isChaos ? 7_200_000 : 600_000);

const archiveKey = randomBytes(32);
const [onPostgres] = sshRigs;
const hosts: [name: string, open: (archiveKey: Buffer) => Promise<SiteHostRig>][] = [
  ['local', openLocalRig],
  ...(onPostgres.missing === '' ? [['ssh', onPostgres.open] satisfies (typeof hosts)[number]] : []),
];
if (onPostgres.missing !== '') skipTests('the site host ssh', onPostgres.missing);

const perSite = 15;
const { seed, count } = sampleOf('generated trees', { inCi: 30, inChaos: 1_000 });

/**
 * The tree that a restore must give. It lacks sockets, which would have no listener, and devices, which belong to the
 * machine. Everything belongs to the one account of the site. Over ssh a FIFO with several names becomes several FIFOs,
 * because GNU tar does not keep such names together.
 */
function kept(before: Tree, { uid, gid }: Account, host: string): Tree {
  const ofPaths = [...before].filter(([, { type }]) => !['s', 'b', 'c'].includes(type));
  return new Map(
    ofPaths.map(([name, facts]) => [
      name,
      { ...facts, owner: `${uid}:${gid}`, sameAs: host === 'ssh' && facts.type === 'p' ? '' : facts.sameAs },
    ]),
  );
}

const missing = missingForTrees();
const suite = missing === '' ? describe.each(hosts) : describe.skip.each(hosts);

suite(`the site host %s${missing}`, (name, open) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-trees-'));
  const storage = localBackupStorage(folder);
  let rig: SiteHostRig;
  beforeAll(async () => {
    rig = await open(archiveKey);
  });
  afterAll(async () => {
    await rig.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('brings back paths of every kind, and loses nothing that GNU tar keeps when the site’s account runs it', async () => {
    let byTar: Tree = new Map();
    const { before, after, packed, account } = await throughHost(rig, storage, (directory, owner) => {
      buildTree(directory, nastyTree(directory), owner);
      byTar = throughTar(directory, owner);
    });
    expect(differences(kept(before, account, name), after)).toEqual([]);
    const skipped = packed.skipped.paths.map((skippedPath) => skippedPath.path).sort();
    const special = isRoot ? ['special/device', 'special/socket'] : ['special/socket'];
    expect(skipped).toEqual(['links/absolute-inside', ...special]);
    const fields = (tree: Tree): Set<string> =>
      new Set(differences(before, tree).map((line) => line.replace(/ (is|was) .*$/s, '')));
    const tar = fields(byTar);
    // A tar that runs as root restores devices and owners too. A site may not have devices or other owners, so the
    // differences in these do not count.
    const lost = [...fields(after)].filter((line) => !tar.has(line));
    expect(account.uid === 0 ? lost.filter((line) => !/: (owner|gone)/.test(line)) : lost).toEqual([]);
  });

  // A host over ssh restores everything if its account is root. Otherwise GNU tar runs in a user namespace that knows
  // only this account, so it cannot restore an access list for another account.
  it('names each path that it does not restore whole', async () => {
    const row = 'u:12345:r';
    const paths: PathToMake[] = [
      {
        path: 'closed',
        type: 'file',
        content: 'text',
        mode: 0o444,
        attributes: [['user.note', Buffer.from('x')]],
        accessList: row,
      },
      { path: 'open', type: 'file', content: 'text', attributes: [['user.note', Buffer.from('x')]] },
    ];
    const { before, after, staged, packed, account } = await throughHost(rig, storage, (directory, owner) =>
      buildTree(directory, paths, owner),
    );
    const told = [...packed.skipped.paths, ...staged.lost.paths].map((lost) => lost.path);
    const differs = differences(kept(before, account, name), after).map((line) => line.replace(/: .*$/s, ''));
    expect([...new Set(differs)]).toEqual(told.map((lost) => JSON.stringify(lost)));
    if (name === 'local') expect(told).toEqual(['closed']);
  });

  // Jest refuses an `it.each` with an empty list.
  if (realTrees.length === 0) skipTests('brings back the files of Debian’s packages', missingTree);
  else
    it.each(realTrees)('brings back the files of Debian’s package %s', async (tree) => {
      const { before, after, packed, account } = await throughHost(rig, storage, (directory, owner) =>
        copyTree(tree, directory, owner),
      );
      expect(before.size).toBeGreaterThan(100);
      expect(differences(kept(before, account, name), after)).toEqual([]);
      expect(packed.skipped.count).toBe(0);
    });

  it(`brings back any tree (${count} of DRYDOCK_SEED=${seed})`, async () => {
    await fc.assert(
      fc.asyncProperty(generatedTrees(perSite), async (paths) => {
        const { before, after, account } = await throughHost(rig, storage, (directory, owner) =>
          buildTree(directory, paths, owner),
        );
        expect(differences(kept(before, account, name), after)).toEqual([]);
      }),
      { seed, numRuns: Math.ceil(count / perSite) },
    );
  });
});

/** The tree after GNU tar has packed and unpacked it with all its options for metadata. */
function throughTar(directory: string, { uid, gid }: Account): Tree {
  const target = mkdtempSync(path.join(tmpdir(), 'drydock-tar-'));
  if (isRoot) chownSync(target, uid, gid);
  const asAccount = isRoot ? ['setpriv', '--reuid', String(uid), '--regid', String(gid), '--clear-groups'] : [];
  const copy = `tar -C "$0" -cf - --format=posix --sparse --xattrs --acls . 2>/dev/null | tar -C "$1" -xpf - --xattrs --acls 2>/dev/null`;
  const [program, ...args] = [...asAccount, 'sh', '-c', copy, directory, target];
  spawnSync(program, args, { cwd: directory });
  try {
    return readTree(target);
  } finally {
    spawnSync('sh', ['-c', 'chmod -R u+rwx "$0"; rm -rf "$0"', target]);
  }
}
