import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fchmodSync, fchownSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { giveAccessLists, giveUserAttributes, type LostPart } from '../files/attributes';
import { DeepPaths } from '../files/deep-paths';
import { setFileTime } from '../files/libc';
import { refuse, systemErrorCode } from '../format/archive-error';
import { decodeAttributes, type Entry } from '../format/entry';
import type { IndexBlock } from '../format/index-block';
import { type ByteString, parentPath } from '../format/path-bytes';
import { BlockContent, type SegmentOrigin } from '../read/read-contents';
import type { LostPath, WorkerSetup } from './extract-workers';

/**
 * With these flags, `open` fails for an existing path and follows no link. A new staging directory should have neither,
 * but the check costs nothing.
 */
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** Only this process may enter a directory during the extraction. Each directory gets its own mode at the end. */
const stagingMode = 0o700;
/** The set-id and sticky bits are set last, because the kernel clears them when a file gets its owner or content. */
const setIdAndSticky = 0o7000;

export interface BlockDone {
  entries: number;
  rawBytes: number;
  lost: LostPath[];
}

/**
 * Writes the directories and files of one block with synchronous calls. They are the fastest, and a worker thread has
 * no other work.
 */
export class BlockExtraction {
  private readonly setup: WorkerSetup;
  private readonly places: DeepPaths;
  private readonly block: IndexBlock;
  private readonly content: BlockContent;
  private readonly made = new Set<ByteString>(['']);
  private readonly lost: LostPath[] = [];

  constructor(setup: WorkerSetup, origin: SegmentOrigin, block: IndexBlock) {
    this.setup = setup;
    this.places = new DeepPaths(setup.directory);
    this.block = block;
    this.content = new BlockContent(origin, block);
  }

  /**
   * Writes the entries whose bit is set in `live`, or all entries if it is null. Returns counts, and the parts that the
   * file system did not store.
   */
  async run(live: Uint8Array | null): Promise<BlockDone> {
    try {
      return await this.write(live);
    } finally {
      this.places.close();
    }
  }

  private async write(live: Uint8Array | null): Promise<BlockDone> {
    const { entries } = this.block;
    const done = { entries: 0, rawBytes: 0, lost: this.lost };
    for (let row = 0; row < entries.length; row += 1) {
      const entry = entries[row] ?? refuse('mismatch', 'block with a hole');
      if (live !== null && ((live[row >> 3] ?? 0) & (1 << (row & 7))) === 0) {
        await this.content.skip(entry.size);
        continue;
      }
      if (entry.type === 'directory') this.makeDirectory(entry.path);
      if (entry.type === 'file') {
        const whole = this.content.takeWhole(entry.size);
        if (whole === null) await this.writePieces(entry);
        else this.writeWhole(entry, whole);
      }
      done.entries += 1;
      done.rawBytes += entry.size;
    }
    this.content.release();
    return done;
  }

  private writeWhole(entry: Entry, content: Buffer): void {
    checkContent(entry, hash('sha256', content, 'buffer'));
    const file = this.createFile(entry);
    try {
      if (entry.sparse) {
        writeSparse(file, content, 0);
        ftruncateSync(file, entry.size);
      } else writeAll(file, content);
      this.finishFile(file, entry);
    } finally {
      closeSync(file);
    }
  }

  private async writePieces(entry: Entry): Promise<void> {
    const file = this.createFile(entry);
    try {
      const digest = createHash('sha256');
      let at = 0;
      for await (const piece of this.content.read(entry.size)) {
        digest.update(piece);
        if (entry.sparse) writeSparse(file, piece, at);
        else writeAll(file, piece);
        at += piece.length;
      }
      if (entry.sparse) ftruncateSync(file, entry.size);
      checkContent(entry, digest.digest());
      this.finishFile(file, entry);
    } finally {
      closeSync(file);
    }
  }

  private createFile(entry: Entry): number {
    const parent = parentPath(entry.path);
    if (!this.made.has(parent)) this.makeDirectory(parent);
    // Attributes can only be set on a file that this process may write. So a file with attributes gets its own mode
    // after them.
    const mode = entry.attributes.length > 0 ? 0o600 : entry.mode & 0o777;
    return openSync(this.places.at(entry.path), createFlags, mode);
  }

  /**
   * Finishes a written file. Owner and mode are set only if `open` has not set them already, because each call is made
   * for every file.
   */
  private finishFile(file: number, entry: Entry): void {
    const { owner, umask } = this.setup;
    if (owner !== null) fchownSync(file, owner.uid, owner.gid);
    if (entry.attributes.length > 0) this.giveAttributes(file, entry);
    else if ((entry.mode & (umask | setIdAndSticky)) !== 0) fchmodSync(file, entry.mode);
    setFileTime(file, entry);
  }

  private giveAttributes(file: number, entry: Entry): void {
    const attributes = decodeAttributes(entry.attributes);
    const onLost = (part: LostPart): void => void this.lost.push({ path: entry.path, part });
    giveUserAttributes(file, attributes, onLost);
    fchmodSync(file, entry.mode);
    giveAccessLists(file, attributes, onLost);
  }

  /**
   * Creates a directory and its missing parents. A parent may be in a block of another worker, so the worker that needs
   * a parent first creates it. The index check has proved that all parents are directories.
   */
  private makeDirectory(path: ByteString): void {
    const missing: ByteString[] = [];
    for (let at = path; !this.made.has(at) && !this.mkdir(at); at = parentPath(at)) missing.push(at);
    for (const at of missing.reverse())
      if (!this.mkdir(at)) refuse('write_failed', `a directory went while it was filled: ${at}`);
  }

  /** Makes a directory. Returns false when its parent does not exist. */
  private mkdir(path: ByteString): boolean {
    try {
      mkdirSync(this.places.at(path), stagingMode);
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return false;
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    this.made.add(path);
    return true;
  }
}

function checkContent(entry: Entry, sha256: Buffer): void {
  if (!sha256.equals(entry.sha256)) refuse('mismatch', `content of ${entry.path} has another SHA-256 than recorded`);
}

/** The usual block size of file systems. A shorter run of zeros cannot become a hole. */
const zeros = Buffer.alloc(4096);

/** Writes the blocks that are not zero. The others become holes, because the file gets its full length afterwards. */
function writeSparse(file: number, content: Buffer, position: number): void {
  for (let at = 0; at < content.length; ) {
    // The blocks are aligned to the start of the file, and not to the start of `content`.
    const next = Math.min(content.length, at + zeros.length - ((position + at) % zeros.length));
    const block = content.subarray(at, next);
    if (!block.equals(zeros.subarray(0, block.length))) {
      for (let done = 0; done < block.length; )
        done += writeSync(file, block, done, block.length - done, position + at + done);
    }
    at = next;
  }
}

function writeAll(file: number, content: Buffer): void {
  for (let at = 0; at < content.length; ) at += writeSync(file, content, at);
}
