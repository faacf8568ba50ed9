import { packetHeadBytes, writeMysqlError } from '@drydock/agent/host';
import type { Refusal, SessionStart } from './session-start';

const greetingProtocol = 10;
const okPacket = 0x00;
/** A greeting has some hundred bytes: a version, a number, a scramble. */
const greetingBytesMax = 1_024;

const refusals: Record<Refusal, [code: number, message: string, sqlState: string]> = {
  full: [1040, 'too many connections for this site', '08004'],
  down: [1053, 'the database does not start', '08S01'],
};

/**
 * Reads the start of a MariaDB session without TLS: the server's greeting has the session's number, and an OK packet
 * lets the client in.
 */
export class MariadbStart implements SessionStart {
  isAuthenticated = false;
  number: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** The number of bytes that are still missing from the current packet. */
  private rest = 0;
  private sequence = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.isAuthenticated; ) {
      const wanted = this.rest > 0 ? this.rest : this.headBytes - this.head.length;
      const taken = Math.min(wanted, chunk.length - at);
      if (this.rest > 0) this.rest -= taken;
      else this.readHead(chunk.subarray(at, at + taken));
      at += taken;
    }
  }

  /** The message that replaces the last packet that was read. */
  refuse(why: Refusal): Buffer {
    const [code, message, sqlState] = refusals[why];
    return this.number === null
      ? writeMysqlError(code, message)
      : writeMysqlError(code, message, { sequence: this.sequence, sqlState });
  }

  /** The greeting is read whole; of later packets only the type. */
  private get headBytes(): number {
    if (this.head.length < packetHeadBytes || this.number !== null) return packetHeadBytes + 1;
    return packetHeadBytes + Math.min(this.lengthOfPacket, greetingBytesMax);
  }

  private get lengthOfPacket(): number {
    return this.head.readUIntLE(0, 3);
  }

  private readHead(bytes: Buffer): void {
    this.head = Buffer.concat([this.head, bytes]);
    if (this.head.length < this.headBytes) return;
    this.sequence = this.head[3] ?? 0;
    const kind = this.head[packetHeadBytes];
    if (this.number === null && kind === greetingProtocol)
      this.number = readSessionNumber(this.head.subarray(packetHeadBytes));
    else if (kind === okPacket) this.isAuthenticated = true;
    this.rest = Math.max(0, packetHeadBytes + this.lengthOfPacket - this.head.length);
    this.head = Buffer.alloc(0);
  }
}

/** The number is behind the protocol's version and the text of the server's version, which ends with a zero. */
function readSessionNumber(greeting: Buffer): number | null {
  const at = greeting.indexOf(0, 1) + 1;
  return at === 0 || at + 4 > greeting.length ? null : greeting.readUInt32LE(at);
}
