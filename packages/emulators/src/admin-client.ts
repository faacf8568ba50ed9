import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { FaultWish } from './protocol/faults';
import { type LedgerEntry, ledgerEntrySchema } from './protocol/state-file';

const callsSchema = z.object({
  calls: z.array(z.object({ at: z.number(), method: z.string(), path: z.string(), status: z.int() })),
});

/** Controls an emulator and reads its records. Tests use this client, and so do programs that fill a sandbox. */
export interface EmulatorAdmin {
  orderFault(fault: FaultWish): Promise<void>;
  clearFaults(): Promise<void>;
  changeClock(change: { scale?: number; advanceSeconds?: number }): Promise<void>;
  readLedger(): Promise<LedgerEntry[]>;
  readCalls(): Promise<z.infer<typeof callsSchema>['calls']>;
  /** Resolves with null when the file does not exist. */
  readDisk(machineId: string, file: string): Promise<string | null>;
  writeDisk(machineId: string, file: string, content: string): Promise<void>;
  /** Calls a route that only one kind of emulator has. Resolves with its JSON. @throws unless the status is 2xx */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

interface Answer {
  status: number;
  text: string;
}

/** Sends one request over a connection of its own, so that an emulator may be restarted between two calls. */
function askOnce(method: string, url: string, adminToken: string, body = ''): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = request(url, { method, agent: false, headers }, (incoming) => {
      buffer(incoming).then(
        (bytes) => resolve({ status: incoming.statusCode ?? 0, text: bytes.toString('utf8') }),
        reject,
      );
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

export function emulatorAdmin(url: string, adminToken: string): EmulatorAdmin {
  const ask = async (method: string, path: string, body?: string): Promise<Answer> =>
    await askOnce(method, `${url}/emulator/${path}`, adminToken, body);
  const expect2xx = ({ status, text }: Answer, what: string): string => {
    if (status < 200 || status > 299) throw new Error(`${what}: ${status} ${text}`);
    return text;
  };
  const call: EmulatorAdmin['call'] = async (method, path, body) => {
    const text = expect2xx(
      await ask(method, path, body === undefined ? undefined : JSON.stringify(body)),
      `${method} ${path}`,
    );
    return text === '' ? undefined : JSON.parse(text);
  };
  return {
    call,
    orderFault: async (fault) => void (await call('POST', 'faults', fault)),
    clearFaults: async () => void (await call('DELETE', 'faults')),
    changeClock: async (change) => void (await call('PUT', 'clock', change)),
    readLedger: async () =>
      z.object({ entries: z.array(ledgerEntrySchema) }).parse(await call('GET', 'ledger')).entries,
    readCalls: async () => callsSchema.parse(await call('GET', 'calls')).calls,
    readDisk: async (machineId, file) => {
      const answer = await ask('GET', `servers/${machineId}/disk${file}`);
      return answer.status === 404 ? null : expect2xx(answer, `read ${file}`);
    },
    writeDisk: async (machineId, file, content) => {
      expect2xx(await ask('PUT', `servers/${machineId}/disk${file}`, content), `write ${file}`);
    },
  };
}
