import { once } from 'node:events';
import { readSync, writeSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { pgDump } from '@electric-sql/pglite-tools/pg_dump';
import { z } from 'zod';
import { defaultCaps, MessageMeter } from '../session/message-meter';
import { TransferError } from '../session/transfer-error';

const sslRequestCode = 80_877_103;
const gssRequestCode = 80_877_104;

/** Tells whether the client requests encryption. The answer to such a request is a single byte instead of a message. */
function isEncryptionRequest(bytes: Buffer): boolean {
  if (bytes.length !== 8) return false;
  const code = bytes.readUInt32BE(4);
  return code === sslRequestCode || code === gssRequestCode;
}

/** Tells whether the message is Terminate, which has no answer. */
const isTerminate = (bytes: Buffer): boolean => bytes.length === 5 && bytes[0] === 0x58;

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
 * A connection with synchronous reads and writes, because WebAssembly cannot await a promise. Node connects, and then
 * the socket's descriptor is used directly. The connection blocks its thread, so it runs in a worker that can be
 * terminated.
 */
class BlockingSocket {
  private readonly socket: Socket;
  private readonly descriptor: number;
  private readonly cell = new Int32Array(new SharedArrayBuffer(4));
  private readonly chunk = Buffer.alloc(chunkBytes);

  private constructor(socket: Socket) {
    this.socket = socket;
    this.descriptor = descriptorOf(socket);
  }

  /** Connects to a server. `host` is its name, or the absolute path of the folder of its Unix socket. */
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
   * Waits for at least one byte. Returns an empty Buffer when the server has closed the connection. The result is a
   * copy, because the buffer is reused.
   */
  read(): Buffer {
    const bytes = this.retry(() => readSync(this.descriptor, this.chunk, 0, chunkBytes, null));
    return Buffer.from(this.chunk.subarray(0, bytes));
  }

  close(): void {
    this.socket.destroy();
  }
}

type Pretended = Parameters<typeof pgDump>[0]['pg'];

const inputSchema = z.object({
  host: z.string(),
  port: z.int(),
  connection: z.string(),
  args: z.array(z.string()),
  areTablesLocked: z.boolean(),
});
const input = inputSchema.parse(workerData);

/** The last error of Postgres. It is recorded, because pg_dump does not report the SQLSTATE. */
const refusal = { sqlState: '', message: '' };

/**
 * Returns the request that the server gets. If the tables are already locked, a request that locks tables or sets the
 * lock time-out becomes a query without effect. The lock time-out of the connection then limits the wait for a view. A
 * client may hold the view's lock while it waits for a locked table.
 */
function withoutLocks(request: Buffer): Buffer {
  if (!input.areTablesLocked || !/^Q[\s\S]{4}(?:LOCK TABLE |SET lock_timeout )/.test(request.toString('latin1', 0, 30)))
    return request;
  const text = Buffer.from("SET LOCAL application_name = 'pg_dump'\0", 'latin1');
  const header = Buffer.from('Q\0\0\0\0', 'latin1');
  header.writeInt32BE(text.length + 4, 1);
  return Buffer.concat([header, text]);
}

/**
 * Passes a whole answer on at once, because pglite-tools, which runs pg_dump, copies all parts so far whenever a part
 * arrives. In steps of 64 kB, an answer of 30 MB would cost 7 GB of copies and hundreds of MB of memory.
 */
function exchange(socket: BlockingSocket, request: Buffer, onData: (data: Uint8Array) => void): void {
  socket.write(request);
  if (isTerminate(request)) return;
  const meter = new MessageMeter(defaultCaps);
  const parts: Buffer[] = [];
  for (let isOurTurn = false; !isOurTurn; ) {
    const answer = socket.read();
    if (answer.length === 0) throw new Error(`the server closed the connection: ${refusal.message}`);
    isOurTurn = isEncryptionRequest(request) || meter.push(answer);
    refusal.sqlState = meter.lastError?.get('C') ?? refusal.sqlState;
    refusal.message = meter.lastError?.get('M') ?? refusal.message;
    parts.push(answer);
  }
  onData(new Uint8Array(Buffer.concat(parts)));
}

/**
 * Returns the three methods of PGlite, an embedded database, that `pgDump` calls. `execProtocolRawStream` passes
 * pg_dump's messages to a real server. The other two only return the answers that `pgDump` expects.
 */
function pretendPglite(socket: BlockingSocket): Pretended {
  const methods = {
    query: () => Promise.resolve({ rows: [{ search_path: '"$user", public' }] }),
    exec: () => Promise.resolve([]),
    execProtocolRawStream: (bytes: Uint8Array, options: { onRawData: (data: Uint8Array) => void }) =>
      exchange(socket, withoutLocks(Buffer.from(bytes)), options.onRawData),
  };
  // The parameter of `pgDump` has the type of the whole class, but the pinned version calls only these methods.
  return methods as unknown as Pretended;
}

async function dump(): Promise<string> {
  const socket = await BlockingSocket.open(input.host, input.port);
  try {
    const file = await pgDump({ pg: pretendPglite(socket), args: ['-d', input.connection, ...input.args] });
    return await file.text();
  } finally {
    socket.close();
  }
}

dump().then(
  (sql) => parentPort?.postMessage({ sql }),
  (error: unknown) => {
    const code = error instanceof TransferError ? error.code : null;
    parentPort?.postMessage({ error: error instanceof Error ? error.message : String(error), code, refusal });
  },
);
