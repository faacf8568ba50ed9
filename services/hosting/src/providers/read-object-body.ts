import { addAbortSignal, Readable } from 'node:stream';
import { ArchiveError, formatBounds } from '@drydock/archive';

/** Twice the largest object that an archive may have. A larger object is not ours and is not read to its end. */
const objectBytesMax = 2 * formatBounds.blockIndexRawBytes;

const tooLarge = (): never => {
  throw new ArchiveError('tampered', 'an object larger than any');
};

/** The whole body, in memory of its own. Rejects when it ends early, is too large, or `signal` is aborted. */
export async function readObjectBody(
  body: unknown,
  declaredBytes: number | undefined,
  signal: AbortSignal,
): Promise<Buffer> {
  if (!(body instanceof Readable)) throw new Error('an answer without a body');
  const stream = addAbortSignal(signal, body);
  try {
    return await (declaredBytes === undefined ? gather(stream) : fill(stream, declaredBytes));
  } finally {
    stream.destroy();
  }
}

/** Fills one allocation, because that can be moved to a thread. */
async function fill(stream: AsyncIterable<Buffer>, declaredBytes: number): Promise<Buffer> {
  if (declaredBytes > objectBytesMax) tooLarge();
  const bytes = Buffer.allocUnsafeSlow(declaredBytes);
  let filled = 0;
  for await (const chunk of stream) {
    if (filled + chunk.length > declaredBytes) tooLarge();
    filled += chunk.copy(bytes, filled);
  }
  if (filled < declaredBytes) throw new Error(`the body ended after ${filled} of ${declaredBytes} bytes`);
  return bytes;
}

async function gather(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > objectBytesMax) tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
