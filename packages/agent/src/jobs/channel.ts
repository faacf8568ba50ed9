import type { Duplex } from 'node:stream';
import { JobProblem } from './job-protocol';

/**
 * One message: a head in JSON, which says what it is, and a body of bytes. Eight bytes before them hold the lengths of
 * both.
 */
export interface Frame {
  head: unknown;
  body: Buffer;
}

const lengthsBytes = 8;
const headBytesMax = 64 * 1024;
const noBytes = Buffer.alloc(0);

/** Resolves when the frame has left this process. A caller that waits for it holds only this one frame in memory. */
export function writeFrame(stream: Duplex, head: object, body: Buffer = noBytes): Promise<void> {
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
 * Yields frames until the other side ends. Nothing is read while the caller works on one. Throws `interrupted` when the
 * stream ends in the middle of a frame.
 */
export async function* readFrames(stream: Duplex, bodyBytesMax: number): AsyncGenerator<Frame> {
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

export const broken = (cause: unknown): JobProblem =>
  cause instanceof JobProblem ? cause : new JobProblem('interrupted', `the channel broke: ${String(cause)}`, { cause });

/**
 * Takes exact numbers of bytes off a stream. Each result has memory of its own, so that it can be moved to a thread.
 */
class ByteReader {
  private readonly chunks: AsyncIterator<Buffer>;
  private rest: Buffer = noBytes;

  constructor(stream: Duplex) {
    this.chunks = stream[Symbol.asyncIterator]();
  }

  /** Null at the end of the stream. */
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
