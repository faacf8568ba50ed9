import { createHash, hash } from 'node:crypto';
import { closeSync, constants, fchmodSync, fchownSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { MessagePort, parentPort, workerData } from 'node:worker_threads';
import { DeepPaths } from '../files/deep-paths';
import { setFileTime } from '../files/libc';
import { giveAccessLists, giveUserAttributes, type LostPart } from '../files/metadata';
import { ArchiveError, asWriteError, refuse, systemErrorCode } from '../format/archive-error';
import { blockName } from '../format/archive-objects';
import { decodeAttributes, type Entry } from '../format/entry';
import { decodeBlock, type IndexBlock } from '../format/index-block';
import { type ByteString, parentPath } from '../format/path-bytes';
import { releaseMemory } from '../format/release-memory';
import { openObject } from '../format/sealed-object';
import type { BlockTask } from '../read/check-tree';
import { BlockContent, type SegmentOrigin } from '../read/read-contents';
import type { LostPath, WorkerAnswer, WorkerMessage, WorkerRequest, WorkerSetup, WorkerStart } from './extract-workers';

/**
 * With these flags, `open` fails for an existing path and for a link. An empty staging directory contains no path and
 * no link, but the flags cost nothing.
 */
const createFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** During the extraction only this process's user may enter a directory. Each directory gets its mode at the end. */
const stagingMode = 0o700;
/**
 * These bits are set after the owner and the content, because the kernel clears the set-id bits when the owner or the
 * content changes.
 */
const setIdAndSticky = 0o7000;

export interface BlockDone {
  entries: number;
  rawBytes: number;
  lost: LostPath[];
}

/**
 * Writes the directories and files of one block with synchronous calls. Synchronous calls are the fastest, and they
 * delay nothing, because a worker thread has no other work.
 */
class BlockExtraction {
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
   * Writes the directories and files whose bit is set in `live`, or all if `live` is null. Links and FIFOs are only
   * counted, because the main thread creates them at the end. Returns the counts, and the attributes and access lists
   * that the file system refused.
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
    // Setting `user.*` attributes needs the right to write the file. So a file with attributes gets its final mode only
    // after its attributes.
    const mode = entry.attributes.length > 0 ? 0o600 : entry.mode & 0o777;
    return openSync(this.places.at(entry.path), createFlags, mode);
  }

  /**
   * Finishes a written file. Each call takes time for every file, so the owner and the mode are set only if necessary.
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
   * Creates a directory and its missing parents. A parent may be in a block of another worker, so the first worker that
   * needs the parent creates it. The index check has proved that all parents are directories.
   */
  private makeDirectory(path: ByteString): void {
    const missing: ByteString[] = [];
    for (let at = path; !this.made.has(at) && !this.mkdir(at); at = parentPath(at)) missing.push(at);
    for (const at of missing.reverse())
      if (!this.mkdir(at)) refuse('write_failed', `a directory went while it was filled: ${at}`);
  }

  /** Returns false if the parent directory does not exist. An existing directory counts as made. */
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

/** Zeros of one block. 4 kB is the usual block size of file systems, and a hole consists of whole blocks. */
const zeros = Buffer.alloc(4096);

/**
 * Writes the blocks that are not zero. The zero blocks become holes, because the file gets its full length afterwards.
 */
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

/*
 * From here on this file is the program of a worker thread of `extract`. The thread runs extractions one after another.
 * It requests objects from the main thread, because an ArchiveSource cannot be passed to a thread.
 */
const port = parentPort ?? refuse('write_failed', 'to be loaded as a worker thread only');
const waiting = new Map<number, (answer: WorkerAnswer) => void>();
let requests = 0;

port.on('message', (message: WorkerStart | WorkerAnswer) => {
  if ('start' in message) {
    void work(message.start);
    return;
  }
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});

async function work(setup: WorkerSetup): Promise<void> {
  const origins = setup.archives.map(originOf);
  try {
    for (let task = await nextTask(); task !== null; task = await nextTask()) await extractTask(setup, origins, task);
    post({ type: 'finished' });
  } catch (error) {
    const { reason, message } = error instanceof ArchiveError ? error : asWriteError(error);
    post({ type: 'failed', reason, detail: message.slice(reason.length + 2) });
  }
}

const originOf = (keys: WorkerSetup['archives'][number], archive: number): SegmentOrigin => ({
  keys: {
    salt: Buffer.from(keys.salt),
    archiveTag: Buffer.from(keys.archiveTag),
    encryption: Buffer.from(keys.encryption),
    authentication: Buffer.from(keys.authentication),
  },
  source: { read: (name) => readObject(archive, name) },
  freesFrames: true,
});

async function extractTask(setup: WorkerSetup, origins: readonly SegmentOrigin[], task: BlockTask): Promise<void> {
  const origin = origins[task.archive] ?? refuse('mismatch', 'task of an unknown archive');
  const bytes = await origin.source.read(blockName(task.block));
  const seal = { size: task.seal.size, mac: Buffer.from(task.seal.mac) };
  const place = { kind: 'block', number: task.block } as const;
  // The block's MAC is compared again, so these bytes are the bytes that were checked before the first write.
  const block = decodeBlock(await openObject(origin.keys, place, bytes, seal), 'tree');
  const done = await new BlockExtraction(setup, origin, block).run(task.live);
  releaseMemory(block.raw);
  post({ type: 'progress', ...done });
}

async function nextTask(): Promise<BlockTask | null> {
  const answer = await ask((id) => ({ id, want: 'task' }));
  return 'task' in answer ? answer.task : null;
}

async function readObject(archive: number, name: string): Promise<Buffer> {
  const answer = await ask((id) => ({ id, want: 'object', archive, name }));
  if (!('object' in answer)) refuse('truncated', `no answer for ${name}`);
  return Buffer.from(answer.object.buffer, answer.object.byteOffset, answer.object.byteLength);
}

function ask(request: (id: number) => WorkerRequest): Promise<WorkerAnswer> {
  requests += 1;
  const id = requests;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    post({ type: 'request', request: request(id) });
  });
}

function post(message: WorkerMessage): void {
  port.postMessage(message);
}

/**
 * Closing the port tells the main thread that this thread has loaded everything. The main thread must not end this
 * thread earlier.
 */
if (workerData instanceof MessagePort) workerData.close();
