import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import { ArchiveError, formatBounds, manifestName } from '@drydock/archive';

/** The most bytes of an object, and the end of the time for it. */
export interface BodyLimits {
  bytesMax: number;
  signal: AbortSignal;
}

/**
 * The bound of a sealed object, a sixteenth above the format's bound: a seal is added, and compression makes some
 * content larger.
 */
const sealed = (rawBytes: number): number => rawBytes + rawBytes / 16;

/** The most bytes that an archive's object of this name may have. A larger one is not ours. */
export function objectBytesMax(name: string): number {
  if (name === manifestName) return sealed(formatBounds.manifestBytes);
  return sealed(name.startsWith('segment-') ? formatBounds.segmentRawBytes : formatBounds.blockIndexRawBytes);
}

const tooLarge = (): never => {
  throw new ArchiveError('tampered', 'an object larger than any of its kind');
};

/** The whole body, in memory of its own. Rejects when it ends early, is too large, or `signal` is aborted. */
export async function readObjectBody(
  body: unknown,
  declaredBytes: number | undefined,
  { bytesMax, signal }: BodyLimits,
): Promise<Buffer> {
  if (declaredBytes !== undefined && declaredBytes > bytesMax) tooLarge();
  const bytes = declaredBytes === undefined ? null : Buffer.allocUnsafeSlow(declaredBytes);
  const chunks: Buffer[] = [];
  const filled = await hear(body, { bytesMax: declaredBytes ?? bytesMax, signal }, (chunk, at) => {
    // One allocation can be moved to a thread.
    if (bytes === null) chunks.push(chunk);
    else chunk.copy(bytes, at);
  });
  if (bytes === null) return Buffer.concat(chunks);
  if (filled < bytes.length) throw new Error(`the body ended after ${filled} of ${bytes.length} bytes`);
  return bytes;
}

/** The SHA-256 of a body, in hex. Keeps nothing of it. Rejects when it is too large, or `signal` is aborted. */
export async function digestObjectBody(body: unknown, limits: BodyLimits): Promise<string> {
  const hash = createHash('sha256');
  await hear(body, limits, (chunk) => hash.update(chunk));
  return hash.digest('hex');
}

/** Calls `onChunk` for each piece with its place. Resolves with the number of bytes. */
async function hear(
  body: unknown,
  { bytesMax, signal }: BodyLimits,
  onChunk: (chunk: Buffer, at: number) => void,
): Promise<number> {
  if (!(body instanceof Readable)) throw new Error('an answer without a body');
  const stream = addAbortSignal(signal, body);
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (bytes + chunk.length > bytesMax) tooLarge();
      onChunk(chunk, bytes);
      bytes += chunk.length;
    }
    return bytes;
  } finally {
    stream.destroy();
  }
}
