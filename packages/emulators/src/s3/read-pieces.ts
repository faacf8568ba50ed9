import { createReadStream } from 'node:fs';

const readBytes = 256 * 1024;

/** Bytes `start` to `end`, both included, of several files that are read as one. */
export async function* readPieces(
  files: readonly { file: string; bytes: number }[],
  start: number,
  end: number,
): AsyncGenerator<Buffer> {
  let offset = 0;
  for (const { file, bytes } of files) {
    const [first, last] = [Math.max(0, start - offset), Math.min(bytes - 1, end - offset)];
    offset += bytes;
    if (first > last) continue;
    for await (const piece of createReadStream(file, { start: first, end: last, highWaterMark: readBytes })) {
      if (!Buffer.isBuffer(piece)) throw new Error('a file is not bytes');
      yield piece;
    }
  }
}
