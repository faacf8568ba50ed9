import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createDatabaseHostClient, type DatabaseHostClient } from '@drydock/agent/clients';
import type { Claim } from '@drydock/agent/control';
import type { DatabaseDescription } from '@drydock/agent/database';
import { PortAllocator } from '@drydock/agent/host';
import type { Major } from '@drydock/contracts/databases/major';
import { settlePostgresFolder } from '@drydock/postgres';
import { until } from '@drydock/testing/wait';
import type pg from 'pg';
import { requirePostgres } from '../src/engines/postgres/postgres-engine';
import { DatabaseFolder, type DatabaseRecord, type InstanceRecord } from '../src/on-disk/database-folder';

export const claim = (fence: number): Claim => ({ fence: String(fence), workflowId: `workflow-${fence}` });
export const newDatabaseId = (): string => randomUUID();
export const ownerPassword = 'the-owner-s-password';
const serverFile = path.resolve(__dirname, '../dist/server.js');

export interface HostFolder {
  databasesDir: string;
  faultsDir: string;
  secret: string;
  controlPort: number;
}

export async function newHostFolder(): Promise<HostFolder> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'drydock-databases-'));
  // If the test runs as root, the servers run under other accounts, which must be able to enter this folder.
  await chmod(root, 0o711);
  const controlPort = await new PortAllocator('127.0.0.1').allocate();
  return {
    databasesDir: path.join(root, 'databases'),
    faultsDir: await mkdtemp(path.join(root, 'faults-')),
    secret: randomBytes(32).toString('hex'),
    controlPort,
  };
}

export interface TestHost {
  child: ChildProcess;
  client: DatabaseHostClient;
  folder: HostFolder;
}

/**
 * Starts the real process from the build output. Resolves once its control port answers, which is after its databases
 * were opened.
 */
export async function spawnHost(folder: HostFolder): Promise<TestHost> {
  const env = {
    ...process.env,
    PORT: String(folder.controlPort),
    LOG_LEVEL: 'error',
    DATABASES_DIR: folder.databasesDir,
    DATABASE_HOST_SECRET: folder.secret,
    DRYDOCK_FAULTS: folder.faultsDir,
  };
  const child = spawn(process.execPath, [serverFile], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  const url = `http://127.0.0.1:${folder.controlPort}`;
  await until(async () => child.exitCode !== null || (await fetch(`${url}/readyz`)).ok, {
    what: 'the host',
    timeoutMs: 120_000,
  });
  if (child.exitCode !== null) throw new Error(`the host ended with ${child.exitCode}`);
  return { child, folder, client: createDatabaseHostClient({ url, secret: folder.secret }) };
}

export async function killHost({ child, client }: TestHost): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  await client.close();
}

/** Ends the agent with SIGTERM and removes its folder. */
export async function clearHost({ child, client, folder }: TestHost): Promise<void> {
  await client.close();
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
  await rm(path.dirname(folder.databasesDir), { recursive: true, force: true });
}

export async function createDatabase(
  client: DatabaseHostClient,
  databaseId: string,
  major: Major,
  storageGb = 10,
): Promise<DatabaseDescription> {
  const size = { vcpu: 1, ram_gb: 1, storage_gb: storageGb };
  const named = { database_name: 'shop', username: 'shop_owner', password: ownerPassword };
  return client.ensureDatabase(databaseId, { mode: 'live', major, ...named, size }, claim(1));
}

type Addressed = Pick<DatabaseDescription, 'host' | 'port' | 'ca_certificate'>;

/** The settings with which a customer connects: to the public address, over TLS with a check of the certificate. */
export const customer = (
  { host, port, ca_certificate: ca }: Addressed,
  change: pg.ClientConfig = {},
): pg.ClientConfig => ({
  host,
  port,
  database: 'shop',
  user: 'shop_owner',
  password: ownerPassword,
  ssl: { ca },
  connectionTimeoutMillis: 30_000,
  ...change,
});

/** The answer to a client of Postgres that asks for TLS: one letter, or an error as text. */
export async function firstAnswer({ host, port }: Addressed): Promise<string> {
  const socket = connect({ host, port });
  socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return answer.toString();
}

/** The code of the error with which the work is refused, such as an SQLSTATE, or `done`. */
export const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );

export const readRecord = ({ folder }: Pick<TestHost, 'folder'>, databaseId: string): DatabaseRecord =>
  JSON.parse(readFileSync(path.join(folder.databasesDir, 'live', databaseId, 'record.json'), 'utf8'));

export interface InstanceFound {
  port: number;
  dataDir: string;
  /** The superuser's URL of the database `postgres`. */
  adminUrl: string;
}

/** Finds an instance of a database in the agent's own files, because no call returns its password. */
export function findInstance(
  host: Pick<TestHost, 'folder'>,
  databaseId: string,
  which?: 'old' | 'target',
): InstanceFound {
  const { major, port, folder } = instanceOf(host, databaseId, which);
  const { dataDir, passwordFile } = settlePostgresFolder(folder, requirePostgres(major));
  const password = readFileSync(passwordFile, 'utf8').trim();
  return { port, dataDir, adminUrl: `postgresql://postgres:${password}@127.0.0.1:${port}/postgres` };
}

export const instanceFolder = (host: Pick<TestHost, 'folder'>, databaseId: string, which?: 'old' | 'target'): string =>
  instanceOf(host, databaseId, which).folder;

function instanceOf(
  host: Pick<TestHost, 'folder'>,
  databaseId: string,
  which?: 'old' | 'target',
): InstanceRecord & { folder: string } {
  const record = readRecord(host, databaseId);
  const id = which === undefined ? record.serving : record.upgrade?.[which];
  const instance = record.instances.find(({ instance_id }) => instance_id === id);
  if (instance === undefined) throw new Error('there is no such instance');
  return {
    ...instance,
    folder: new DatabaseFolder(host.folder.databasesDir, 'live', databaseId).instanceFolder(instance.instance_id),
  };
}
