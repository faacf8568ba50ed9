import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import {
  ArchiveError,
  type ArchiveLink,
  type ArchiveSource,
  completeLimits,
  directoryRoot,
  folderSink,
  folderSource,
  openChain,
  pack,
  type SealedPiece,
  streamRoot,
  verifyChain,
} from '@drydock/archive';
import { createLog } from '@drydock/service/telemetry';
import { until } from '@drydock/testing/wait';
import { StepWait } from '@drydock/workflow/definition';
import { fetchPieces, onSpool, spooledArchive, spoolFolder } from './fetch-chain';
import { onStorage } from './open-destination';

const sealed = Buffer.from('what was sealed');
const altered = Buffer.from('what was altered');

const pieceOf = (name: string): SealedPiece => ({
  name,
  size: sealed.length,
  verify: (bytes) => {
    if (!bytes.equals(sealed)) throw new ArchiveError('tampered', name);
  },
});

/** A storage in which all objects have the same content. It records the reads. */
class Remote {
  readonly asked: string[] = [];
  content = sealed;

  async read(name: string): Promise<Buffer> {
    this.asked.push(name);
    return Buffer.from(this.content);
  }
}

describe('what is fetched from a customer’s storage', () => {
  let folder: string;
  let remote: Remote;
  beforeEach(() => {
    folder = path.join(mkdtempSync(path.join(tmpdir(), 'drydock-spool-')), 'archive');
    remote = new Remote();
  });
  afterEach(() => rmSync(path.dirname(folder), { recursive: true, force: true }));

  it('gets its name on our disk only after it was verified', async () => {
    remote.content = altered;
    await expect(spooledArchive(remote, folder, false).hold(pieceOf('segment-00000000'))).rejects.toMatchObject({
      reason: 'tampered',
    });
    remote.content = sealed;
    await spooledArchive(remote, folder, false).hold(pieceOf('segment-00000000'));
    expect(readdirSync(folder)).toEqual(['segment-00000000']);
    expect(remote.asked).toHaveLength(2);
  });

  it('is fetched once, however many readers ask for it, at once and afterwards', async () => {
    const archive = spooledArchive(remote, folder, false);
    const piece = pieceOf('index-00000000');
    await Promise.all([archive.hold(piece), archive.hold(piece), archive.hold(piece)]);
    expect(await archive.read('index-00000000')).toEqual(sealed);
    expect(await spooledArchive(remote, folder, false).read('index-00000000')).toEqual(sealed);
    expect(remote.asked).toEqual(['index-00000000']);
  });

  it('goes once it was read for the last time, segment by segment', async () => {
    for (const name of ['index-00000000', 'segment-00000000', 'segment-00000001'])
      await spooledArchive(remote, folder, false).hold(pieceOf(name));
    const lastUse = spooledArchive(remote, folder, true);
    await lastUse.read('index-00000000');
    await lastUse.read('segment-00000001');
    expect(readdirSync(folder).sort()).toEqual(['index-00000000', 'segment-00000000']);
  });

  it('is fetched again after the machine was started again, because its content may not have reached the disk', async () => {
    for (const boot of ['first', 'first', 'second'])
      await spooledArchive(remote, spoolFolder(folder, 'archive', boot), false).hold(pieceOf('segment-00000000'));
    expect(remote.asked).toHaveLength(2);
    expect(spoolFolder(folder, 'archive')).toBe(spoolFolder(folder, 'archive'));
  });

  it('and was lost since is read from the storage again, and only the manifest is kept', async () => {
    const archive = spooledArchive(remote, folder, false);
    for (const name of ['manifest', 'index-00000000', 'segment-00000000'])
      expect(await archive.read(name)).toEqual(sealed);
    expect(readdirSync(folder)).toEqual(['manifest']);
  });
});

const mb = 2 ** 20;
const key = Buffer.alloc(32, 5);
const site = { siteId: 'site', orgId: 'org' };
/** The content of the table. It cannot be compressed, so an archive stores it in two segments. */
const table = randomBytes(9 * mb);

/** A chain of five copies of a site with a small file that changes and a large table that does not. */
async function packFive(folder: string): Promise<ArchiveLink[]> {
  const filesDir = path.join(folder, 'files');
  mkdirSync(filesDir);
  const chain: ArchiveLink[] = [];
  for (let sequence = 1; sequence <= 5; sequence += 1) {
    writeFileSync(path.join(filesDir, 'page'), 'x'.repeat(sequence));
    const archiveId = `archive-${sequence}`;
    const dump = async function* () {
      yield { path: 'dump', content: Readable.from([table]) };
    };
    const { manifestMac } = await pack({
      roots: [directoryRoot('files', filesDir), streamRoot('database', dump())],
      sink: folderSink(path.join(folder, archiveId)),
      key,
      identity: { archiveId, ...site, sequence },
      createdAt: new Date(),
      ...(chain.length > 0 && { parent: chain }),
    });
    const source = folderSource(path.join(folder, archiveId));
    chain.push({ source, expected: { archiveId, ...site, manifestMac } });
  }
  return chain;
}

describe('a chain of five copies of a large table', () => {
  let stored: string;
  let chain: ArchiveLink[];
  beforeAll(async () => {
    stored = mkdtempSync(path.join(tmpdir(), 'drydock-chain-'));
    chain = await packFive(stored);
  });
  afterAll(() => rmSync(stored, { recursive: true, force: true }));

  let spoolDir: string;
  /** The reads of all segments, such as `archive-5/segment-00000001`. */
  let asked: string[];
  /** The reads of segments wait for this promise. */
  let gate: Promise<void>;
  beforeEach(() => {
    spoolDir = mkdtempSync(path.join(tmpdir(), 'drydock-spool-'));
    asked = [];
    gate = Promise.resolve();
  });
  afterEach(() => rmSync(spoolDir, { recursive: true, force: true }));

  /** The links of the chain, read through the spool of a workflow. */
  const spooled = (workflowId: string): ArchiveLink[] =>
    chain.map(({ source, expected }) => {
      const remote: ArchiveSource = {
        read: async (name) => {
          if (name.startsWith('segment-')) {
            asked.push(`${expected.archiveId}/${name}`);
            await gate;
          }
          return source.read(name);
        },
      };
      const folder = spoolFolder(path.join(spoolDir, workflowId), expected.archiveId);
      return { expected, source: spooledArchive(remote, folder, false) };
    });
  const fetch = async (workflowId: string, space: { freeBytes: number; totalBytes: number }): Promise<number[]> => {
    const shown: number[] = [];
    await fetchPieces(await openChain(spooled(workflowId), key, completeLimits()), path.join(spoolDir, workflowId), {
      signal: new AbortController().signal,
      progress: (share) => void shown.push(share),
      spoolSpace: async () => space,
    });
    return shown;
  };
  const spooledBytes = (): number =>
    readdirSync(spoolDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0);
  /** Enough for one fetch of the chain, with the reserve, but not for two. */
  const roomForOne = { freeBytes: 80 * mb, totalBytes: 1_000 * mb };

  it('takes the table into the spool once, and is verified and read from there', async () => {
    const shown = await fetch('one', roomForOne);
    expect(asked.sort()).toEqual([
      'archive-1/segment-00000000',
      'archive-2/segment-00000000',
      'archive-3/segment-00000000',
      'archive-4/segment-00000000',
      'archive-5/segment-00000000',
      'archive-5/segment-00000001',
      'archive-5/segment-00000002',
    ]);
    expect(spooledBytes()).toBeLessThan(table.length + mb);
    expect(shown.at(-1)).toBe(1);
    expect(shown).toEqual([...shown].sort((x, y) => x - y));
    for (const contents of [false, true]) expect(await verifyChain(spooled('one'), key, { contents })).toHaveLength(5);
    expect(asked).toHaveLength(7);
  });

  it('waits without a segment while others hold the space, and ends at once if the spool is too small for it', async () => {
    await expect(fetch('one', { freeBytes: 70 * mb, totalBytes: 1_000 * mb })).rejects.toMatchObject({
      name: 'SpoolFull',
    });
    await expect(fetch('one', { freeBytes: 70 * mb, totalBytes: 70 * mb })).rejects.toMatchObject({
      problem: { code: 'storage_full' },
      alarm: 'archive_refused',
    });
    expect(asked).toEqual([]);
  });

  it('goes on with what it has, for which it needs no room', async () => {
    await fetch('one', roomForOne);
    await fetch('one', { freeBytes: 65 * mb, totalBytes: 1_000 * mb });
    expect(asked).toHaveLength(7);
  });

  it('does not get the room that another restore was promised, before the other has ended', async () => {
    let open = (): void => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    const first = fetch('one', roomForOne);
    await until(() => asked.length > 0);
    await expect(fetch('other', roomForOne)).rejects.toMatchObject({ name: 'SpoolFull' });
    open();
    await first;
    expect(await fetch('other', roomForOne)).not.toHaveLength(0);
  });
});

describe('a disk that is full', () => {
  let spoolDir: string;
  let folder: string;
  beforeEach(() => {
    spoolDir = mkdtempSync(path.join(tmpdir(), 'drydock-spool-'));
    folder = spoolFolder(path.join(spoolDir, 'workflow'), 'archive');
    mkdirSync(folder, { recursive: true });
    // A write under one of these names ends with ENOSPC.
    for (const name of ['segment-00000000', 'manifest'])
      for (let at = 0; at < 2_000; at += 1)
        symlinkSync('/dev/full', path.join(folder, `${name}.${process.pid}-${at}.partial`));
  });
  afterEach(() => rmSync(spoolDir, { recursive: true, force: true }));

  it('postpones a restore, even its last attempt, and takes back what the restore has spooled', async () => {
    const held = spooledArchive(new Remote(), folder, false);
    const step = { failures: 7, signal: new AbortController().signal };
    const own = { workflowId: 'workflow', log: createLog({ service: 'test', level: 'silent' }) };
    const work = onStorage(step, 8, () =>
      onSpool({ offsite: { spoolDir } }, own, () => held.hold(pieceOf('segment-00000000'))),
    );
    await expect(work).rejects.toBeInstanceOf(StepWait);
    expect(existsSync(path.join(spoolDir, 'workflow'))).toBe(false);
  });

  it('has no manifest cached, which is then read from the storage each time', async () => {
    const remote = new Remote();
    const archive = spooledArchive(remote, folder, false);
    for (let times = 0; times < 2; times += 1) expect(await archive.read('manifest')).toEqual(sealed);
    expect(remote.asked).toEqual(['manifest', 'manifest']);
  });
});
