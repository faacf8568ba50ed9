const headBytes = 5;
/** A type, a length, and the four bytes that tell a kind of authentication or a backend's process. */
const toldBytes = headBytes + 4;
const authentication = 'R'.charCodeAt(0);
const backendKey = 'K'.charCodeAt(0);

/** Reads along as Postgres starts a session, and keeps nothing but what it is for: whether the client has proved itself, and the number of the backend. */
export class SessionStart {
  isAuthenticated = false;
  /** The last message of interest: what follows is not looked at. */
  pid: number | null = null;
  private head: Buffer = Buffer.alloc(0);
  /** How much of the present message is still to come. */
  private rest = 0;

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && this.pid === null; ) {
      const taken = this.rest > 0 ? Math.min(this.rest, chunk.length - at) : Math.min(toldBytes - this.head.length, chunk.length - at);
      if (this.rest > 0) this.rest -= taken;
      else this.readHead(chunk.subarray(at, at + taken));
      at += taken;
    }
  }

  private readHead(bytes: Buffer): void {
    this.head = Buffer.concat([this.head, bytes]);
    if (this.head.length < toldBytes) return;
    const told = this.head.readInt32BE(headBytes);
    if (this.head[0] === authentication && told === 0) this.isAuthenticated = true;
    if (this.head[0] === backendKey) this.pid = told;
    this.rest = this.head.readUInt32BE(1) + 1 - toldBytes;
    this.head = Buffer.alloc(0);
  }
}
