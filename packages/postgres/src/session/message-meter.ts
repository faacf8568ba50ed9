import { TransferError } from './transfer-error';

const headerBytes = 5;
/** The length of an authentication message's header, which ends with the code of its kind. */
const authenticationBytes = 9;

export interface MessageCaps {
  /** The most bytes of a result's row. */
  rowBytes: number;
  /** The most bytes of all rows of an answer. */
  resultBytes: number;
  /** The most bytes of any other message: a notice, an error, a notification, a reported setting. */
  otherBytes: number;
}

export const defaultCaps: MessageCaps = { rowBytes: 64 * 2 ** 20, resultBytes: 256 * 2 ** 20, otherBytes: 2 ** 20 };

const names: Record<string, string> = { D: 'result', N: 'notice', E: 'error', A: 'notification', S: 'setting' };

/**
 * Reads the headers in a stream of the server's messages. It keeps no content except the last error. A header has the
 * length of its message, so an oversized message is refused before it arrives. COPY data has no cap, because it is
 * processed piece by piece.
 */
export class MessageMeter {
  private readonly caps: MessageCaps;
  private readonly header = Buffer.alloc(authenticationBytes);
  private filled = 0;
  private wanted = headerBytes;
  private bodyLeft = 0;
  private resultBytes = 0;
  private handsOver = false;
  private errorParts: Buffer[] | null = null;
  /** The fields of the server's last error by letter: C is the SQLSTATE, and M the message. */
  lastError: ReadonlyMap<string, string> | null = null;

  constructor(caps: MessageCaps) {
    this.caps = caps;
  }

  /**
   * Returns true if the chunk ends with a message that awaits the client: ReadyForQuery, the start of a COPY that the
   * client feeds, or an authentication request. A synchronous client must read exactly to the end of that message. It
   * would lose an answer if it stopped earlier, and wait for ever if it read on. Throws `message_too_large`.
   */
  push(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; ) {
      if (this.bodyLeft > 0) {
        const taken = Math.min(this.bodyLeft, chunk.length - at);
        this.readBody(chunk.subarray(at, at + taken));
        at += taken;
        continue;
      }
      const taken = Math.min(this.wanted - this.filled, chunk.length - at);
      chunk.copy(this.header, this.filled, at, at + taken);
      this.filled += taken;
      at += taken;
      if (this.filled === this.wanted) this.readHeader();
    }
    return this.filled === 0 && this.bodyLeft === 0 && this.handsOver;
  }

  private readBody(part: Buffer): void {
    this.bodyLeft -= part.length;
    if (this.errorParts === null) return;
    this.errorParts.push(Buffer.from(part));
    if (this.bodyLeft > 0) return;
    const fields = Buffer.concat(this.errorParts).toString('utf8').split('\0');
    this.lastError = new Map(fields.map((field) => [field.slice(0, 1), field.slice(1)]));
    this.errorParts = null;
  }

  private readHeader(): void {
    const type = String.fromCharCode(this.header[0] ?? 0);
    const bytes = this.header.readUInt32BE(1) - 4;
    if (type === 'R' && this.wanted === headerBytes && bytes >= 4) {
      this.wanted = authenticationBytes;
      return;
    }
    this.bodyLeft = bytes - (this.wanted - headerBytes);
    this.handsOver = this.isHandOver(type);
    this.filled = 0;
    this.wanted = headerBytes;
    this.admit(type, bytes);
    this.errorParts = type === 'E' ? [] : null;
  }

  private isHandOver(type: string): boolean {
    if (type !== 'R') return type === 'Z' || type === 'G' || type === 'W';
    const code = this.header.readUInt32BE(headerBytes);
    // AuthenticationOk (0) and the end of SASL (12) need no answer.
    return code !== 0 && code !== 12;
  }

  private admit(type: string, bytes: number): void {
    if (type === 'd') return;
    if (type === 'Z') this.resultBytes = 0;
    if (type === 'D') this.resultBytes += bytes;
    const isTooLarge = bytes > (type === 'D' ? this.caps.rowBytes : this.caps.otherBytes);
    if (!isTooLarge && this.resultBytes <= this.caps.resultBytes) return;
    const size = Math.max(bytes, this.resultBytes);
    throw new TransferError('message_too_large', `Postgres sends a ${names[type] ?? 'message'} of ${size} bytes`);
  }
}
