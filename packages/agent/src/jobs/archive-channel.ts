import type { Duplex } from 'node:stream';
import {
  ArchiveError,
  type ArchiveReason,
  type ArchiveSink,
  type ArchiveSource,
  archiveReasons,
  isObjectName,
} from '@drydock/archive';
import { z } from 'zod';
import { JobProblem } from './job-protocol';

/**
 * A message on the channel. On the wire it is four bytes with the length of the head, four bytes with the length of the
 * body, the head as JSON, and the body.
 */
export interface Frame {
  head: unknown;
  body: Buffer;
}

const lengthsBytes = 8;
const headBytesMax = 64 * 1024;
const noBytes = Buffer.alloc(0);

/**
 * Writes a frame. Resolves when the frame has left this process. A caller that waits for this holds only one frame in
 * memory.
 */
function writeFrame(stream: Duplex, head: object, body: Buffer = noBytes): Promise<void> {
  const headBytes = Buffer.from(JSON.stringify(head));
  const lengths = Buffer.allocUnsafe(lengthsBytes);
  lengths.writeUInt32BE(headBytes.length, 0);
  lengths.writeUInt32BE(body.length, 4);
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null): void => (error ? reject(broken(error)) : resolve());
    stream.cork();
    stream.write(lengths);
    stream.write(headBytes, body.length === 0 ? done : undefined);
    if (body.length > 0) stream.write(body, done);
    stream.uncork();
  });
}

/**
 * Yields frames until the stream ends. The next frame is read only when the caller asks for it. Throws `interrupted` if
 * the stream ends within a frame, or a frame is too large.
 */
async function* readFrames(stream: Duplex, bodyBytesMax: number): AsyncGenerator<Frame> {
  const bytes = new ByteReader(stream);
  for (;;) {
    const lengths = await bytes.take(lengthsBytes);
    if (lengths === null) return;
    const [headBytes, bodyBytes] = [lengths.readUInt32BE(0), lengths.readUInt32BE(4)];
    if (headBytes > headBytesMax || bodyBytes > bodyBytesMax) throw broken(new Error('a frame larger than any'));
    const head = await bytes.require(headBytes);
    yield { head: JSON.parse(head.toString('utf8')), body: await bytes.require(bodyBytes) };
  }
}

const broken = (cause: unknown): JobProblem =>
  cause instanceof JobProblem ? cause : new JobProblem('interrupted', `the channel broke: ${String(cause)}`, { cause });

/**
 * Reads exact numbers of bytes from a stream. Each result has separate memory, so that the result can be transferred to
 * a thread.
 */
class ByteReader {
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = noBytes;

  constructor(stream: Duplex) {
    this.chunks = stream[Symbol.asyncIterator]();
  }

  /** Resolves with the next `length` bytes, or with null at the end of the stream. */
  async take(length: number): Promise<Buffer | null> {
    if (length === 0) return noBytes;
    const taken = Buffer.allocUnsafeSlow(length);
    let filled = 0;
    while (filled < length) {
      if (this.rest.length === 0) {
        const next = await this.chunks.next().catch((error: unknown) => Promise.reject(broken(error)));
        if (next.done === true && filled === 0) return null;
        if (next.done === true) throw broken(new Error('it ended within a frame'));
        this.rest = next.value;
      }
      const copied = this.rest.copy(taken, filled);
      filled += copied;
      this.rest = this.rest.subarray(copied);
    }
    return taken;
  }

  async require(length: number): Promise<Buffer> {
    return (await this.take(length)) ?? Promise.reject(broken(new Error('it ended within a frame')));
  }
}

/** The largest body of a frame, in bytes. No object of an archive reaches this size. */
const objectBytesMax = 48 * 2 ** 20;
/** The most objects that are read or written, and so held in memory, at the same time. */
const atOnceMax = 4;

const requestSchema = z.discriminatedUnion('op', [
  z.strictObject({ id: z.int(), op: z.literal('read'), archive: z.int().min(0), name: z.string() }),
  z.strictObject({ id: z.int(), op: z.literal('write'), name: z.string() }),
]);
type ObjectRequest = z.infer<typeof requestSchema>;

const isReason = (text: string): text is ArchiveReason => Object.hasOwn(archiveReasons, text);
const answerSchema = z.strictObject({
  id: z.int(),
  /** Set if the archive was refused, for example because it is damaged. */
  refusal: z.strictObject({ reason: z.string().refine(isReason), detail: z.string() }).optional(),
  /** Set if the storage failed. The process that serves the archives keeps the reason. */
  failed: z.literal(true).optional(),
});

/** The archives that a job may use: the archives to read, by their position in the list, and the archive to write. */
export interface ServedArchives {
  sources: readonly ArchiveSource[];
  sink?: ArchiveSink;
}

export interface ServedChannel {
  /**
   * Resolves when the job has closed the stream and every answer is written. Rejects with `interrupted` if the
   * connection broke.
   */
  ended: Promise<void>;
  /**
   * The first error of the storage, or undefined. A refusal of an archive is no such error. If the job fails with
   * `storage_failed`, `runJob` throws this error.
   */
  failure(): unknown;
}

/**
 * Answers a job's requests for objects of the storage. At most four objects are in memory at a time. Further requests
 * wait in the connection.
 */
export function serveArchives(stream: Duplex, served: ServedArchives): ServedChannel {
  let failure: unknown;
  const answer = async (request: ObjectRequest, body: Buffer): Promise<void> => {
    try {
      const bytes = await carryOut(served, request, body);
      await writeFrame(stream, { id: request.id }, bytes);
    } catch (error) {
      if (error instanceof JobProblem) throw error;
      if (error instanceof ArchiveError) {
        await writeFrame(stream, { id: request.id, refusal: { reason: error.reason, detail: error.message } });
        return;
      }
      failure ??= error;
      await writeFrame(stream, { id: request.id, failed: true });
    }
  };
  const serve = async (): Promise<void> => {
    const running = new Set<Promise<void>>();
    try {
      for await (const { head, body } of readFrames(stream, objectBytesMax)) {
        const work = answer(requestSchema.parse(head), body).catch(
          (error: unknown) => void stream.destroy(broken(error)),
        );
        running.add(work);
        void work.then(() => running.delete(work));
        if (running.size >= atOnceMax) await Promise.race(running);
      }
      await Promise.all(running);
      stream.end();
    } catch (error) {
      stream.destroy();
      throw broken(error);
    }
  };
  return { ended: serve(), failure: () => failure };
}

async function carryOut(
  { sources, sink }: ServedArchives,
  request: ObjectRequest,
  body: Buffer,
): Promise<Buffer | undefined> {
  if (!isObjectName(request.name)) throw new TypeError(`not the name of an archive object: ${request.name}`);
  if (request.op === 'write') {
    if (sink === undefined) throw new TypeError('the job writes no archive');
    await sink.write(request.name, body);
    return undefined;
  }
  const source = sources[request.archive];
  if (source === undefined) throw new TypeError(`the job reads no archive ${request.archive}`);
  return source.read(request.name);
}

export interface RemoteArchives {
  /** The archive at this position of the served list. */
  source(archive: number): ArchiveSource;
  sink: ArchiveSink;
  /** Tells the process that serves the archives that no more requests follow. */
  end(): void;
}

interface Pending {
  resolve(body: Buffer): void;
  reject(error: unknown): void;
}

/**
 * The job's end of a channel. A call throws an ArchiveError if the archive is refused, `storage_failed` if the storage
 * failed, and `interrupted` if the connection broke.
 */
export function remoteArchives(stream: Duplex): RemoteArchives {
  const pending = new Map<number, Pending>();
  let requests = 0;
  let end: JobProblem | null = null;

  const receive = async (): Promise<never> => {
    for await (const { head, body } of readFrames(stream, objectBytesMax)) {
      const { id, refusal, failed } = answerSchema.parse(head);
      const waiting = pending.get(id);
      pending.delete(id);
      if (refusal !== undefined) waiting?.reject(new ArchiveError(refusal.reason, withoutReason(refusal)));
      else if (failed) waiting?.reject(new JobProblem('storage_failed', 'the storage could not be asked'));
      else waiting?.resolve(body);
    }
    throw broken(new Error('the other side has gone'));
  };
  receive().catch((error: unknown) => {
    end = broken(error);
    for (const { reject } of pending.values()) reject(end);
    pending.clear();
    stream.destroy();
  });

  const ask = (request: object, body?: Buffer): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      if (end !== null) {
        reject(end);
        return;
      }
      requests += 1;
      pending.set(requests, { resolve, reject });
      writeFrame(stream, { id: requests, ...request }, body).catch(reject);
    });

  return {
    source: (archive) => ({ read: (name) => ask({ op: 'read', archive, name }) }),
    sink: { write: async (name, bytes) => void (await ask({ op: 'write', name }, bytes)) },
    end: () => void stream.end(),
  };
}

const withoutReason = ({ reason, detail }: { reason: string; detail: string }): string =>
  detail.startsWith(`${reason}: `) ? detail.slice(reason.length + 2) : detail;
