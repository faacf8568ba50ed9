import { writeFatal } from '@drydock/agent/host/startup-packet';

const headBytes = 5;
/** A type, a length, and the four bytes that tell a kind of authentication or a backend's process. */
const toldBytes = headBytes + 4;
const authentication = 'R'.charCodeAt(0);
const backendKey = 'K'.charCodeAt(0);

/** Why a session ends that has only begun. */
export type Refusal = 'full' | 'down';
const refusals: Record<Refusal, [sqlState: string, message: string]> = {
  full: ['53300', 'too many connections for this site'],
  down: ['57P03', 'the database does not start'],
};

/** Reads along as a server starts a session, and keeps nothing but what it is for. */
export interface SessionStart {
  /** Whether the client has proved itself. */
  readonly isAuthenticated: boolean;
  /** By what the server knows the session; null until it has said so. */
  readonly number: number | null;
  push(chunk: Buffer): void;
  /** The message for the client that replaces the server's last one. */
  refuse(why: Refusal): Buffer;
}

/** Postgres starts a session. */
export class PostgresStart implements SessionStart {
  isAuthenticated = false;
  /** The last message of interest: what follows is not looked at. */
  number: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** How much of the present message is still to come. */
  private rest = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.number === null; ) {
      const taken = this.rest > 0 ? Math.min(this.rest, chunk.length - at) : Math.min(toldBytes - this.head.length, chunk.length - at);
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
