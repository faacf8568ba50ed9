import { parentPort, workerData } from 'node:worker_threads';
import { pgDump } from '@electric-sql/pglite-tools/pg_dump';
import { z } from 'zod';
import { BlockingSocket, isEncryptionRequest, isTerminate } from '../session/blocking-socket';
import { defaultCaps, MessageMeter } from '../session/message-meter';
import { TransferError } from '../session/transfer-error';

type Pretended = Parameters<typeof pgDump>[0]['pg'];

const inputSchema = z.object({
  host: z.string(),
  port: z.int(),
  connection: z.string(),
  args: z.array(z.string()),
  areTablesLocked: z.boolean(),
});
const input = inputSchema.parse(workerData);

/** The last error of Postgres. pg_dump does not pass it on in this form. */
const refusal = { sqlState: '', message: '' };

/**
 * Changes a query of pg_dump that locks tables, or that removes our connection's time limit on locks. When the tables
 * are already locked, it becomes a query that does nothing. A view takes locks as well, and behind a client that waits
 * for our locks it would wait for ever.
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
 * Passes the whole answer on at once. With each further part, the wrapper copies everything that it has been given: at
 * 64 kB a time, an answer of 30 MB would cost it 7 GB of copies, and hundreds of MB that are not collected in time.
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

/** An object with the three methods that pg_dump's wrapper calls on an embedded database. They reach a real server. */
function pretendPglite(socket: BlockingSocket): Pretended {
  const methods = {
    query: () => Promise.resolve({ rows: [{ search_path: '"$user", public' }] }),
    exec: () => Promise.resolve([]),
    execProtocolRawStream: (bytes: Uint8Array, options: { onRawData: (data: Uint8Array) => void }) =>
      exchange(socket, withoutLocks(Buffer.from(bytes)), options.onRawData),
  };
  // The wrapper's parameter has the type of the whole class, but it calls only these methods. Its version is pinned
  // exactly.
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
