import type { Duplex } from 'node:stream';

/** One message of either side: the request it is about, a JSON value, and perhaps bytes. */
export interface Frame {
  id: number;
  value: unknown;
  body: Buffer;
}

const headBytes = 12;
/** The limit exceeds the size of a page. */
const frameBytesMax = 32 * 2 ** 20;

/** `[length of JSON][length of body][id]`, four bytes each, then both. */
export function encodeFrame(id: number, value: unknown, body: Buffer = Buffer.alloc(0)): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(json.length, 0);
  head.writeUInt32BE(body.length, 4);
  head.writeUInt32BE(id, 8);
  return Buffer.concat([head, json, body]);
}

/**
 * Sends a frame together with the others of this turn, because each write is a system call and wakes the other side.
 */
export function sendFrame(way: Duplex, frame: Buffer): void {
  if (way.writableCorked === 0) {
    way.cork();
    setImmediate(() => way.uncork());
  }
  way.write(frame);
}

/** Assembles frames from the pieces of a stream. Throws for a frame that neither side would send. */
export class FrameReader {
  private pieces: Buffer[] = [];
  private held = 0;
  private wanted = headBytes;

  *read(piece: Buffer): Generator<Frame> {
    this.pieces.push(piece);
    this.held += piece.length;
    // Pieces are joined only when the whole frame is there, because a large one would be copied again and again.
    while (this.held >= this.wanted) {
      const bytes = this.pieces.length === 1 ? (this.pieces[0] ?? piece) : Buffer.concat(this.pieces);
      const [json, body] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)];
      const whole = headBytes + json + body;
      if (whole > frameBytesMax) throw new Error(`a frame of ${whole} bytes`);
      const isWhole = bytes.length >= whole;
      if (isWhole) {
        const value: unknown = JSON.parse(bytes.toString('utf8', headBytes, headBytes + json));
        yield { id: bytes.readUInt32BE(8), value, body: bytes.subarray(headBytes + json, whole) };
      }
      const rest = isWhole ? bytes.subarray(whole) : bytes;
      this.pieces = rest.length === 0 ? [] : [rest];
      this.held = rest.length;
      this.wanted = isWhole ? headBytes : whole;
    }
  }
}
