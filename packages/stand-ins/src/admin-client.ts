import { z } from 'zod';
import type { FaultWish } from './protocol/fault-orders';
import { type LedgerEntry, ledgerEntrySchema } from './protocol/ledger';

const callsSchema = z.object({ calls: z.array(z.object({ at: z.number(), method: z.string(), path: z.string(), status: z.int() })) });

/** Tells a stand-in what to do, and reads what it did. For tests and for whoever fills a sandbox. */
export interface StandInAdmin {
  orderFault(fault: FaultWish): Promise<void>;
  clearFaults(): Promise<void>;
  changeClock(change: { scale?: number; advanceSeconds?: number }): Promise<void>;
  readLedger(): Promise<LedgerEntry[]>;
  readCalls(): Promise<z.infer<typeof callsSchema>['calls']>;
  /** Null when there is no such file. */
  readDisk(machineId: string, file: string): Promise<string | null>;
  writeDisk(machineId: string, file: string, content: string): Promise<void>;
  /** A route of one stand-in alone; resolves with its JSON. @throws unless it answers 2xx */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
}

export function standInAdmin(url: string, adminToken: string): StandInAdmin {
  const ask = async (method: string, path: string, body?: string): Promise<Response> =>
    await fetch(`${url}/stand-in/${path}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
      ...(body === undefined ? {} : { body }),
    });
  const call: StandInAdmin['call'] = async (method, path, body) => {
    const response = await ask(method, path, body === undefined ? undefined : JSON.stringify(body));
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
  return {
    call,
    orderFault: async (fault) => void (await call('POST', 'faults', fault)),
    clearFaults: async () => void (await call('DELETE', 'faults')),
    changeClock: async (change) => void (await call('PUT', 'clock', change)),
    readLedger: async () => z.object({ entries: z.array(ledgerEntrySchema) }).parse(await call('GET', 'ledger')).entries,
    readCalls: async () => callsSchema.parse(await call('GET', 'calls')).calls,
    readDisk: async (machineId, file) => {
      const response = await ask('GET', `servers/${machineId}/disk${file}`);
      const text = await response.text();
      if (response.status === 404) return null;
      if (!response.ok) throw new Error(`${response.status} ${text}`);
      return text;
    },
    writeDisk: async (machineId, file, content) => {
      const response = await ask('PUT', `servers/${machineId}/disk${file}`, content);
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    },
  };
}
