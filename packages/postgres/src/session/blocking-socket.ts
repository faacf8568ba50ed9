import { once } from 'node:events';
import { readSync, writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';

const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;

/**
 * Whether the client's bytes request encryption. The server answers that with a single byte, which is not a message.
 */
export function isEncryptionRequest(bytes: Buffer): boolean {
  if (bytes.length !== 8) return false;
  const code = bytes.readUInt32BE(4);
  return code === sslRequestCode || code === gssRequestCode;
}

/** Terminate has no answer. */
export const isTerminate = (bytes: Buffer): boolean => bytes.length === 5 && bytes[0] === 0x58;

const napMs = 0.1;
const chunkBytes = 64 * 1024;

function descriptorOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const descriptor: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined;
  if (typeof descriptor !== 'number' || descriptor < 0)
    throw new Error('this platform gives no file descriptor for a socket');
  return descriptor;
}

const isNotReady = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EAGAIN';

/**
 * A connection with synchronous reads and writes, for WebAssembly, which cannot wait. Node connects, and then the
 * descriptor is used directly. It blocks its thread, so it belongs into a worker that its owner can terminate.
 */
export class BlockingSocket {
  private readonly socket: Socket;
  private readonly descriptor: number;
  private readonly cell = new Int32Array(new SharedArrayBuffer(4));
  private readonly chunk = Buffer.alloc(chunkBytes);

  private constructor(socket: Socket) {
    this.socket = socket;
    this.descriptor = descriptorOf(socket);
  }

  /** `host` is a folder when the server has a Unix socket. */
  static async open(host: string, port: number): Promise<BlockingSocket> {
    const socket = connect(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port, noDelay: true });
    socket.pause();
    await once(socket, 'connect');
    return new BlockingSocket(socket);
  }

  private retry(call: () => number): number {
    for (;;) {
      try {
        return call();
      } catch (error) {
        if (!isNotReady(error)) throw error;
        Atomics.wait(this.cell, 0, 0, napMs);
      }
    }
  }

  write(bytes: Buffer): void {
    for (let offset = 0; offset < bytes.length; ) {
      const from = offset;
      offset += this.retry(() => writeSync(this.descriptor, bytes, from, bytes.length - from));
    }
  }

  /**
   * Waits for at least one byte. Empty when the server has closed the connection. The result is a copy, because the
   * buffer is used again.
   */
  read(): Buffer {
    const bytes = this.retry(() => readSync(this.descriptor, this.chunk, 0, chunkBytes, null));
    return Buffer.from(this.chunk.subarray(0, bytes));
  }

  close(): void {
    this.socket.destroy();
  }
}
