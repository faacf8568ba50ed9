import { writeFatal } from '@drydock/agent/host';

const headBytes = 5;
/** A type, a length, and four bytes that tell the kind of authentication or a backend's process. */
const toldBytes = headBytes + 4;
const authentication = 'R'.charCodeAt(0);
const backendKey = 'K'.charCodeAt(0);

/** The reason why a session is refused at its start. */
export type Refusal = 'full' | 'down';
const refusals: Record<Refusal, [sqlState: string, message: string]> = {
  full: ['53300', 'too many connections for this site'],
  down: ['57P03', 'the database does not start'],
};

/** Reads the start of a session on a server, and keeps only what it needs. */
export interface SessionStart {
  /** Whether the client has proved itself. */
  readonly isAuthenticated: boolean;
  /** The server's number for the session; null until the server has sent it. */
  readonly number: number | null;
  push(chunk: Buffer): void;
  /** The message for the client that replaces the server's last one. */
  refuse(why: Refusal): Buffer;
}

/** Postgres starts a session. */
export class PostgresStart implements SessionStart {
  isAuthenticated = false;
  /** The number from the last message of interest. Later messages are not read. */
  number: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** The number of bytes that are still missing from the current message. */
  private rest = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.number === null; ) {
      const taken =
        this.rest > 0
          ? Math.min(this.rest, chunk.length - at)
          : Math.min(toldBytes - this.head.length, chunk.length - at);
      if (this.rest > 0) this.rest -= taken;
      else this.readHead(chunk.subarray(at, at + taken));
      at += taken;
    }
  }

  refuse(why: Refusal): Buffer {
    return writeFatal(...refusals[why]);
  }

  private readHead(bytes: Buffer): void {
    this.head = Buffer.concat([this.head, bytes]);
    if (this.head.length < toldBytes) return;
    const told = this.head.readInt32BE(headBytes);
    if (this.head[0] === authentication && told === 0) this.isAuthenticated = true;
    if (this.head[0] === backendKey) this.number = told;
    this.rest = this.head.readUInt32BE(1) + 1 - toldBytes;
    this.head = Buffer.alloc(0);
  }
}
