import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createVendorEmulator, type FaultWish, type LedgerEntry } from '@drydock/emulators';
import { closeServer, listen } from '@drydock/service/http';
import { newSecret } from '@drydock/testing/secret';

export interface VendorContent {
  web: Record<string, string>;
  databases: Record<string, Record<string, string>>;
  mailboxes: Record<string, Record<string, string>>;
}

/** The vendor's emulator in this process, and changes that a test makes at the vendor without Drydock. */
export interface TestVendor {
  url: string;
  keys: { live: string; sandbox: string };
  /** Environment of the API and of the workers. */
  environment: Record<string, string>;
  content(packageId: string): Promise<VendorContent>;
  fill(packageId: string, content: VendorContent): Promise<void>;
  /** Makes a restore point of the whole package, as the vendor does every night. */
  keepPoints(packageId: string): Promise<void>;
  change(packageId: string, change: object): Promise<void>;
  fault(wish: FaultWish): Promise<void>;
  clearFaults(): Promise<void>;
  setClock(change: { scale?: number; advanceSeconds?: number }): Promise<void>;
  ledger(): Promise<LedgerEntry[]>;
  calls(): Promise<Array<{ at: number; method: string; path: string; status: number }>>;
  close(): Promise<void>;
}

/** Starts the emulator. With `clockScale` 100 a job of 20 seconds takes 200 ms. */
export async function openVendor({ clockScale = 100 }: { clockScale?: number } = {}): Promise<TestVendor> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'drydock-vendor-'));
  const [live, sandbox, adminToken] = [newSecret(), newSecret(), newSecret()];
  const keys = new Map([
    ['live', live],
    ['sandbox', sandbox],
  ]);
  const [liveReader, sandboxReader] = [newSecret(), newSecret()];
  const readerKeys = new Map([
    ['live', liveReader],
    ['sandbox', sandboxReader],
  ]);
  const server = createVendorEmulator({ stateDir, keys, readerKeys, adminToken, clockScale, jobSeconds: 20 });
  const { url } = await listen(server, 0);
  const admin = async (method: string, target: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${url}/emulator${target}`, {
      method,
      headers: { authorization: `Bearer ${adminToken}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${target} answered ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  };
  return {
    url,
    keys: { live, sandbox },
    environment: {
      VENDOR_URL: url,
      VENDOR_KEY: live,
      VENDOR_READER_KEY: liveReader,
      VENDOR_SANDBOX_URL: url,
      VENDOR_SANDBOX_KEY: sandbox,
      VENDOR_SANDBOX_READER_KEY: sandboxReader,
      VENDOR_POLL_MS: '50',
      VENDOR_WATCH_MS: '2500',
    },
    content: async (packageId) => (await admin('GET', `/packages/${packageId}/content`)) as VendorContent,
    fill: async (packageId, content) => void (await admin('PUT', `/packages/${packageId}/content`, content)),
    keepPoints: async (packageId) => void (await admin('POST', `/packages/${packageId}/points`)),
    change: async (packageId, change) => void (await admin('PATCH', `/packages/${packageId}`, change)),
    fault: async (wish) => void (await admin('POST', '/faults', wish)),
    clearFaults: async () => void (await admin('DELETE', '/faults')),
    setClock: async (change) => void (await admin('PUT', '/clock', change)),
    ledger: async () => ((await admin('GET', '/ledger')) as { entries: LedgerEntry[] }).entries,
    calls: async () => ((await admin('GET', '/calls')) as { calls: [] }).calls,
    close: async () => {
      server.closeAllConnections();
      await closeServer(server);
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** The content of a package in these tests, different for each version. */
export const vendorContent = (version: number): VendorContent => ({
  web: { 'index.html': `<h1>version ${version}</h1>`, [`only-in-${version}.txt`]: String(version) },
  databases: {
    shop: { 'orders.json': JSON.stringify([{ id: 1, version }]) },
    blog: { 'posts.json': JSON.stringify([{ version }]) },
  },
  mailboxes: { info: { 'cur/1:2,S': `message of ${version}` }, sales: { 'cur/9:2,S': `another of ${version}` } },
});
