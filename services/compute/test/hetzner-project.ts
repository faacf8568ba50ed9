import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createHetznerEmulator, type FaultWish, type LedgerEntry, usualActionSeconds } from '@drydock/emulators';
import { closeServer, listen } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { readerTokens, targetConfig } from './compute-api';

/** The token is no secret, because it is valid only during a test. */
const adminToken = 'a'.repeat(64);
const tokens = { live: 'live-token', sandbox: 'sandbox-token' } as const;

/** The provider's emulator on a socket, with the calls by which a test prepares and checks it. */
export interface HetznerProject {
  target(change?: object, mode?: 'live' | 'sandbox'): object;
  admin(method: string, path: string, body?: unknown): Promise<unknown>;
  fault(order: FaultWish): Promise<unknown>;
  /** The changes that the provider has accepted, as its ledger lists them. */
  ledger(op?: string): Promise<LedgerEntry[]>;
  calls(): Promise<{ at: number; method: string; path: string; status: number }[]>;
  /** Makes a running machine that Drydock has not ordered. */
  makeMachine(change?: { type?: string; name?: string; mode?: 'live' | 'sandbox' }): Promise<string>;
  makeSnapshot(machineId: string, description?: string, mode?: 'live' | 'sandbox'): Promise<string>;
  /** Removes a snapshot without Drydock, as the owner of the project can. */
  removeSnapshot(snapshotId: string): Promise<unknown>;
  /** The ids of the machines of the live project with this name, as the provider lists them. */
  machinesNamed(name: string): Promise<number[]>;
  snapshotsOf(machineId: string): Promise<number[]>;
  writeDisk(machineId: string, content: string): Promise<unknown>;
  /** The content of a file, by default of `/srv/state`; empty if there is none. */
  readDisk(machineId: string, file?: string): Promise<string>;
  close(): Promise<void>;
}

/** Opens a project. Its time passes `clockScale` times as fast as real time. */
export async function openHetznerProject(clockScale = 40): Promise<HetznerProject> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'drydock-hetzner-'));
  const server: Server = createHetznerEmulator({
    stateDir,
    adminToken,
    clockScale,
    tokens: new Map(Object.entries(tokens)),
    readerTokens: new Map(Object.entries(tokens).map(([name, token]) => [name, readerTokens.get(token) ?? ''])),
    callsPerHour: 3_600,
    actionSeconds: usualActionSeconds,
  });
  const { url } = await listen(server, 0, '127.0.0.1');
  const ask = async (token: string, method: string, target: string, body?: unknown): Promise<string> => {
    const isText = typeof body === 'string';
    const answer = await fetch(`${url}${target}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined || isText ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : isText ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${target} answered ${answer.status}: ${text}`);
    return text;
  };
  const admin = async (method: string, target: string, body?: unknown): Promise<unknown> => {
    const text = await ask(adminToken, method, `/emulator${target}`, body);
    return text === '' ? null : JSON.parse(text);
  };
  const pass = (seconds: number) => admin('PUT', '/clock', { advanceSeconds: seconds });
  return {
    admin,
    target: (change = {}, mode = 'live') => targetConfig(`${url}/v1`, tokens[mode], change),
    fault: (order) => admin('POST', '/faults', order),
    ledger: async (op) => {
      const { entries } = (await admin('GET', '/ledger')) as { entries: LedgerEntry[] };
      return op === undefined ? entries : entries.filter((entry) => entry.op === op);
    },
    calls: async () => ((await admin('GET', '/calls')) as { calls: [] }).calls,
    makeMachine: async ({ type = 'cpx11', name = uuidv7(), mode = 'live' } = {}) => {
      const body = { name, server_type: type, image: 'ubuntu-24.04', location: 'fsn1' };
      const made = JSON.parse(await ask(tokens[mode], 'POST', '/v1/servers', body)) as { server: { id: number } };
      await pass(60);
      await ask(tokens[mode], 'GET', `/v1/servers/${made.server.id}`);
      return String(made.server.id);
    },
    makeSnapshot: async (machineId, description = '', mode = 'live') => {
      const body = { type: 'snapshot', description };
      const made = JSON.parse(
        await ask(tokens[mode], 'POST', `/v1/servers/${machineId}/actions/create_image`, body),
      ) as {
        image: { id: number };
      };
      await pass(60);
      // At each request the emulator ends the actions that are due.
      await ask(tokens[mode], 'GET', `/v1/images/${made.image.id}`);
      return String(made.image.id);
    },
    removeSnapshot: (snapshotId) => ask(tokens.live, 'DELETE', `/v1/images/${snapshotId}`),
    machinesNamed: async (name) => {
      const listed = JSON.parse(await ask(tokens.live, 'GET', `/v1/servers?name=${name}`)) as {
        servers: { id: number }[];
      };
      return listed.servers.map(({ id }) => id);
    },
    snapshotsOf: async (machineId) => {
      const listed = JSON.parse(
        await ask(tokens.live, 'GET', '/v1/images?type=snapshot&sort=created:desc&per_page=50'),
      ) as {
        images: { id: number; created_from: { id: number } }[];
      };
      return listed.images.filter(({ created_from: from }) => String(from.id) === machineId).map(({ id }) => id);
    },
    writeDisk: (machineId, content) => ask(adminToken, 'PUT', `/emulator/servers/${machineId}/disk/srv/state`, content),
    readDisk: (machineId, file = '/srv/state') =>
      ask(adminToken, 'GET', `/emulator/servers/${machineId}/disk${file}`).catch(() => ''),
    close: async () => {
      await closeServer(server);
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
