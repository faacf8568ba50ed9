import { parentPort, workerData } from 'node:worker_threads';
import { pgDump } from '@electric-sql/pglite-tools/pg_dump';
import { z } from 'zod';
import { BlockingSocket } from './blocking-socket';
import { defaultCaps, MessageMeter } from './message-meter';
import { isEncryptionRequest, isTerminate } from './protocol-turn';

type Pretended = Parameters<typeof pgDump>[0]['pg'];

const inputSchema = z.object({ host: z.string(), port: z.int(), connection: z.string(), args: z.array(z.string()) });

/** The message of an error, in what the server said last. */
const lastWords = (answer: Buffer): string => /\0M([^\0]*)\0/.exec(answer.toString('utf8'))?.[1] ?? '';
let lastAnswer: Buffer = Buffer.alloc(0);

function exchange(socket: BlockingSocket, request: Buffer, onData: (data: Uint8Array) => void): void {
  socket.write(request);
  if (isTerminate(request)) return;
  const meter = new MessageMeter(defaultCaps);
  for (;;) {
    const answer = socket.read();
    if (answer.length === 0) throw new Error(`the server closed the connection: ${lastWords(lastAnswer)}`);
    lastAnswer = answer;
    const isOurTurn = isEncryptionRequest(request) || meter.push(answer);
    onData(new Uint8Array(answer));
    if (isOurTurn) return;
  }
}

/** The three methods that pg_dump's wrapper calls on what it believes to be an embedded database; behind them is a real server. */
function pretendPglite(socket: BlockingSocket): Pretended {
  const methods = {
    query: () => Promise.resolve({ rows: [{ search_path: '"$user", public' }] }),
    exec: () => Promise.resolve([]),
    execProtocolRawStream: (bytes: Uint8Array, options: { onRawData: (data: Uint8Array) => void }) =>
      exchange(socket, Buffer.from(bytes), options.onRawData),
  };
  // The wrapper's parameter is the whole class though it calls only these; its version is pinned exactly.
  return methods as unknown as Pretended;
}

async function dump(): Promise<string> {
  const input = inputSchema.parse(workerData);
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
  (error: unknown) => parentPort?.postMessage({ error: error instanceof Error ? error.message : String(error) }),
);
