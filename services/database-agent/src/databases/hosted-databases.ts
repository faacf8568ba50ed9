import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Change, ChangeName } from '@drydock/agent/control';
import {
  type DatabaseDescription,
  DatabaseHostError,
  type DatabaseStorage,
  type EnsureDatabase,
} from '@drydock/agent/database';
import { admitFence, Changes, type Ledger } from '@drydock/agent/jobs';
import type { Major } from '@drydock/contracts/databases/major';
import { removeServerFolders } from '@drydock/process';
import type { ScratchAccess } from '../engines/engine';
import { DatabaseFolder, type DatabaseRecord } from '../on-disk/database-folder';
import { type AgentContext, HostedDatabase, newInstance } from './hosted-database';
import { engineOf, Instance } from './instance';

/** The pause before another attempt to open a database, for example while its port is taken. */
const reopenMs = 5_000;
const modes = ['live', 'sandbox'] as const;

export interface Known {
  database: HostedDatabase;
  scratches: Scratches;
}

/**
 * All databases of this machine. Every change that a worker requests is made through this class. It checks the fence,
 * writes a line of the ledger, and makes one change at a time for each database.
 */
export class HostedDatabases {
  private readonly databasesDir: string;
  private readonly context: AgentContext;
  private readonly changes: Changes;
  private readonly fences: Fences;
  private readonly all = new Map<string, Known>();
  /**
   * The databases whose record cannot be read, or whose leftover folders cannot be removed. The agent leaves them
   * closed until its next start.
   */
  private readonly unreadable = new Set<string>();
  private isClosing = false;

  constructor(databasesDir: string, ledger: Ledger, context: AgentContext) {
    this.databasesDir = databasesDir;
    this.changes = new Changes(ledger);
    this.context = context;
    this.fences = new Fences(databasesDir);
  }

  /**
   * Reads the record of every database on disk and removes leftovers, then opens all databases. A database that cannot
   * be opened is tried again later and does not delay the others. A database whose record cannot be read stays closed.
   */
  async open(): Promise<void> {
    for (const mode of modes) {
      await mkdir(path.join(this.databasesDir, mode), { recursive: true, mode: 0o711 });
      for (const databaseId of await readdir(path.join(this.databasesDir, mode)))
        await this.find(mode, databaseId).catch((err: unknown) => {
          this.unreadable.add(databaseId);
          this.context.log.error({ err, database_id: databaseId }, 'the record of a database cannot be read');
        });
    }
    await Promise.all([...this.all.values()].map(({ database }) => this.openKnown(database)));
  }

  read(databaseId: string): HostedDatabase {
    return this.known(databaseId).database;
  }

  /** Describes a database. Throws `unknown_database` if there is none, or if its creation has not finished. */
  async describe(databaseId: string): Promise<DatabaseDescription> {
    const database = this.read(databaseId);
    if (!database.record.is_ready)
      throw new DatabaseHostError('unknown_database', `database ${databaseId} was never finished`);
    return database.describe();
  }

  /** Reads the storage of each database that has been counted, by its id. */
  readStorage(): Record<string, DatabaseStorage> {
    const counted: Record<string, DatabaseStorage> = {};
    for (const [databaseId, { database }] of this.all)
      if (database.storage !== null) counted[databaseId] = database.storage;
    return counted;
  }

  /** Runs one change of an existing database. Throws `unknown_database`, `stale_fence`, and the errors of `work`. */
  change<T>(databaseId: string, name: ChangeName, change: Change, work: (known: Known) => Promise<T>): Promise<T> {
    return this.fenced(databaseId, name, change, () => work(this.known(databaseId)));
  }

  /** Makes the database, or completes it if a crash has interrupted its creation. */
  ensure(databaseId: string, wanted: EnsureDatabase): Promise<DatabaseDescription> {
    // The password is left out, because not even a digest of it may be in the ledger.
    const { password, ...told } = wanted;
    return this.fenced(databaseId, { op: 'ensure_database' }, told, async () => {
      await engineOf(wanted.major).assertInstalled(wanted.major);
      const { database } = this.all.get(databaseId) ?? (await this.record(databaseId, wanted));
      if (!database.endpoint.server.listening) await database.open();
      await database.makeReady(password);
      return database.describe();
    });
  }

  destroy(databaseId: string, change: Change): Promise<void> {
    return this.fenced(databaseId, { op: 'destroy_database' }, change, async () => {
      const found = this.all.get(databaseId);
      if (found === undefined) return;
      await found.scratches.close();
      await found.database.destroy();
      this.all.delete(databaseId);
      const { endpoint_port: endpointPort, instances } = found.database.record;
      for (const port of [endpointPort, ...instances.map((instance) => instance.port)])
        this.context.ports.release(port);
    });
  }

  list(): HostedDatabase[] {
    return [...this.all.values()].map(({ database }) => database);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await Promise.all(
      [...this.all.values()].map(({ scratches, database }) => Promise.all([scratches.close(), database.close()])),
    );
  }

  /**
   * The database of this id with its scratch instances. Throws `unknown_database`, or `instance_down` if its record
   * cannot be read.
   */
  known(databaseId: string): Known {
    this.assertReadable(databaseId);
    const found = this.all.get(databaseId);
    if (found === undefined) throw new DatabaseHostError('unknown_database', `there is no database ${databaseId}`);
    return found;
  }

  private assertReadable(databaseId: string): void {
    if (this.unreadable.has(databaseId))
      throw new DatabaseHostError('instance_down', `the record of database ${databaseId} cannot be read`);
  }

  private fenced<T>(databaseId: string, name: ChangeName, change: Change, work: () => Promise<T>): Promise<T> {
    return this.changes.run(databaseId, name, change, async () => {
      this.assertReadable(databaseId);
      await this.fences.admit(databaseId, change.fence);
      return work;
    });
  }

  private async record(databaseId: string, wanted: EnsureDatabase): Promise<Known> {
    const folder = new DatabaseFolder(this.databasesDir, wanted.mode, databaseId);
    await folder.make();
    const instance = await newInstance(wanted.major, this.context);
    const record: DatabaseRecord = {
      database_id: databaseId,
      mode: wanted.mode,
      endpoint_port: await this.context.ports.allocate(),
      database_name: wanted.database_name,
      username: wanted.username,
      size: wanted.size,
      is_ready: false,
      serving: instance.instance_id,
      instances: [instance],
      kept: [],
      switched: [],
      upgrade: null,
    };
    await folder.write(record);
    return this.remember(folder, record);
  }

  private remember(folder: DatabaseFolder, record: DatabaseRecord): Known {
    const known = {
      database: new HostedDatabase(folder, record, this.context),
      scratches: new Scratches(folder, this.context),
    };
    this.all.set(record.database_id, known);
    return known;
  }

  private async find(mode: string, databaseId: string): Promise<void> {
    const folder = new DatabaseFolder(this.databasesDir, mode, databaseId);
    const record = await folder.read();
    await clearUnnamed(folder, record?.instances.map(({ instance_id }) => instance_id) ?? []);
    if (record === null) return folder.remove();
    for (const port of [record.endpoint_port, ...record.instances.map((instance) => instance.port)])
      this.context.ports.reserve(port);
    this.remember(folder, record);
  }

  private async openKnown(database: HostedDatabase): Promise<void> {
    if (this.isClosing || database.isDestroyed) return;
    try {
      await database.open();
    } catch (err) {
      this.context.log.error({ err, database_id: database.record.database_id }, 'a database could not be opened');
      await database.close();
      setTimeout(() => void this.openKnown(database), reopenMs).unref();
    }
  }
}

/**
 * Removes the folders of instances that the record does not name. A crash may have left such a folder: that of a
 * scratch instance, or that of a target whose upgrade or restore was being undone.
 */
async function clearUnnamed(folder: DatabaseFolder, instanceIds: readonly string[]): Promise<void> {
  for (const entry of await readdir(folder.root, { withFileTypes: true })) {
    if (!entry.isDirectory() || instanceIds.includes(entry.name)) continue;
    await removeServerFolders(folder.instanceFolder(entry.name));
  }
}

/**
 * The latest fence of each database, on disk. It is kept even after the database is gone, so that a worker with an
 * older fence cannot make the database again.
 */
class Fences {
  private readonly folder: string;

  constructor(databasesDir: string) {
    this.folder = path.join(databasesDir, 'fences');
  }

  /** Admits a change with this fence. Throws `stale_fence` if a newer fence has been admitted. */
  async admit(databaseId: string, fence: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await admitFence(path.join(this.folder, databaseId), fence);
  }
}

const scratchSize = { vcpu: 1, ram_gb: 1, storage_gb: 1 };

/**
 * The scratch instances of a database, which exist only for a check. The record does not name them, so the next start
 * of the agent removes any that a crash has left.
 */
class Scratches {
  private readonly folder: DatabaseFolder;
  private readonly context: AgentContext;
  private readonly instances = new Map<string, Instance>();

  constructor(folder: DatabaseFolder, context: AgentContext) {
    this.folder = folder;
    this.context = context;
  }

  /** Makes an empty scratch instance. An existing instance of this id is replaced. */
  async make(scratchId: string, major: Major): Promise<ScratchAccess> {
    return { ...(await this.start(scratchId, major)), caCertificate: this.context.tls.authority };
  }

  private async start(scratchId: string, major: Major): Promise<{ adminUrl: string; port: number }> {
    await this.drop(scratchId);
    const { tls, log, ports, accounts } = this.context;
    const instance = new Instance({
      folder: this.folder.instanceFolder(`scratch-${scratchId}`),
      major,
      port: await ports.allocate(),
      account: await accounts.allocate(),
      tls,
      log,
      purpose: () => ({ size: scratchSize, databaseName: null, isFrozen: false }),
      onUp: async () => undefined,
      onDown: () => undefined,
    });
    this.instances.set(scratchId, instance);
    await instance.start();
    return { adminUrl: instance.adminUrl ?? '', port: instance.port };
  }

  /** Removes the scratch instance. A missing instance is no error. */
  async drop(scratchId: string): Promise<void> {
    const instance = this.instances.get(scratchId);
    if (instance === undefined) return;
    this.instances.delete(scratchId);
    await instance.remove();
    this.context.ports.release(instance.port);
  }

  async close(): Promise<void> {
    await Promise.all([...this.instances.keys()].map((scratchId) => this.drop(scratchId)));
  }
}
