import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ArchiveError, type SealedPiece } from '@drydock/archive';
import { spooledArchive, spoolFolder } from './fetch-chain';

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
