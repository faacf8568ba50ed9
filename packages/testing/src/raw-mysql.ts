import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** The client's capabilities: CLIENT_LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION and PLUGIN_AUTH. */
const capabilities = 0x8a201;
const tlsCapability = 0x800;
const changeUser = 0x11;
const utf8mb4 = 45;
/**
 * The authentication plugin that each login proposes. No account uses it, so the server switches to the account's own
 * plugin and waits for an answer.
 */
const otherPlugin = 'mysql_clear_password';
const terminated = (text: string): Buffer => Buffer.from(`${text}\0`);

/** A client of MariaDB and MySQL that can stop in the middle of a login or of a change of user. */
export class RawMysql {
  private socket: Socket;
  private said: Buffer = Buffer.alloc(0);
  private sequence = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.listen();
  }

  /** Connects and reads the greeting. With `ca`, TLS then starts. */
  static async connect(place: NetConnectOpts, ca?: string): Promise<RawMysql> {
    const client = new RawMysql(connect(place));
    await client.read();
    if (ca !== undefined) await client.startTls(ca);
    return client;
  }

  /** Begins a login. Resolves with the server's scramble, from which the proof of the password is computed. */
  async beginLogin(user: string, isTls = false): Promise<Buffer> {
    const head = this.loginHead(isTls);
    this.write(Buffer.concat([head, terminated(user), Buffer.from([0]), terminated(otherPlugin)]));
    return scrambleIn(await this.read());
  }

  async login(user: string, password: string): Promise<void> {
    this.write(nativeProof(password, await this.beginLogin(user)));
    const answer = await this.read();
    if (answer[0] !== 0) throw new Error(`the login was refused: ${answer.toString('latin1')}`);
  }

  /** Begins a change of user within a session. Resolves like {@link beginLogin}. */
  async beginChange(user: string): Promise<Buffer> {
    this.sequence = 0;
    const charset = Buffer.from([utf8mb4, 0]);
    this.write(
      Buffer.concat([
        Buffer.from([changeUser]),
        terminated(user),
        Buffer.from([0]),
        terminated(''),
        charset,
        terminated(otherPlugin),
      ]),
    );
    return scrambleIn(await this.read());
  }

  /** Sends an invalid proof. Resolves with the server's answer. */
  async failProof(): Promise<Buffer> {
    this.write(Buffer.alloc(20, 1));
    return this.read();
  }

  /** Runs a query. Resolves with the answer's first packet, which begins with 0xff for an error. */
  async query(sql: string): Promise<Buffer> {
    this.sequence = 0;
    this.write(Buffer.concat([Buffer.from([3]), Buffer.from(sql)]));
    return this.read();
  }

  get isOpen(): boolean {
    return !this.socket.destroyed;
  }

  destroy(): void {
    this.socket.destroy();
  }

  private listen(): void {
    this.socket.on('error', () => undefined);
    this.socket.on('data', (data: Buffer) => {
      this.said = Buffer.concat([this.said, data]);
      this.socket.emit('heard');
    });
    this.socket.on('close', () => this.socket.emit('heard'));
  }

  private loginHead(isTls: boolean): Buffer {
    const head = Buffer.alloc(32);
    head.writeUInt32LE(isTls ? capabilities | tlsCapability : capabilities, 0);
    head.writeUInt32LE(2 ** 24, 4);
    head[8] = utf8mb4;
    return head;
  }

  private async startTls(ca: string): Promise<void> {
    this.write(this.loginHead(true));
    this.socket.removeAllListeners('data');
    const secure = connectTls({ socket: this.socket, ca, checkServerIdentity: () => undefined });
    await once(secure, 'secureConnect');
    this.socket = secure;
    this.listen();
  }

  private write(body: Buffer): void {
    const head = Buffer.alloc(4);
    head.writeUIntLE(body.length, 0, 3);
    head[3] = this.sequence;
    this.sequence += 1;
    this.socket.write(Buffer.concat([head, body]));
  }

  private async read(): Promise<Buffer> {
    for (;;) {
      const length = this.said.length < 4 ? Number.POSITIVE_INFINITY : 4 + this.said.readUIntLE(0, 3);
      if (this.said.length >= length) {
        const body = this.said.subarray(4, length);
        this.sequence = (this.said[3] ?? 0) + 1;
        this.said = this.said.subarray(length);
        return body;
      }
      if (this.socket.destroyed) throw new Error('the server has hung up');
      await once(this.socket, 'heard');
    }
  }
}

/** Returns the scramble from the server's AuthSwitchRequest: the twenty bytes after the name of the plugin. */
function scrambleIn(request: Buffer): Buffer {
  if (request[0] !== 0xfe) throw new Error(`the server asks for no proof: ${request.toString('latin1')}`);
  const at = request.indexOf(0, 1) + 1;
  return request.subarray(at, at + 20);
}

function nativeProof(password: string, scramble: Buffer): Buffer {
  const sha1 = (...parts: Buffer[]): Buffer => createHash('sha1').update(Buffer.concat(parts)).digest();
  const once = sha1(Buffer.from(password));
  const mask = sha1(scramble, sha1(once));
  return Buffer.from(once.map((byte, at) => byte ^ (mask[at] ?? 0)));
}
