/** More than any answer of an API that we ask. */
const answerBytesMax = 1024 * 1024;

/** A body as text. Rejects when it is larger than any honest answer, so that one can neither fill the memory nor never end. */
export async function readCapped(body: AsyncIterable<unknown>, bytesMax = answerBytesMax): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    if (!Buffer.isBuffer(piece)) throw new Error('the body is not made of bytes');
    bytes += piece.length;
    // Leaving the loop destroys the body and its connection.
    if (bytes > bytesMax) throw new Error(`the answer is larger than ${bytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
