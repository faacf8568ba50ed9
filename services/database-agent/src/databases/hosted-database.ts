import { randomBytes } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { type DatabaseDescription, DatabaseHostError, type DatabaseStorage } from '@drydock/agent/database';
import { type Accounts, listenStubbornly, type PortAllocator } from '@drydock/agent/host';
import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import type { Log } from '@drydock/service/telemetry';
import { Endpoint } from '../endpoint/endpoint';
import type { Engine, SnapshotSession } from '../engines/engine';
import { placesOf } from '../engines/instance-settings';
import type { DatabaseFolder, DatabaseRecord, InstanceRecord, UpgradeRecord } from '../on-disk/database-folder';
import type { TlsMaterial } from '../on-disk/tls-authority';
import { DatabaseDisk } from './database-disk';
import { engineOf, Instance } from './instance';

/** How long a restarted agent waits for a port that its previous process still holds, in milliseconds. */
const portWaitMs = 15_000;
/**
 * How long a new session waits for a serving instance, in milliseconds. A crashed instance needs less time to restart.
 */
const holdMs = 20_000;

/** The parts of the agent that all of its databases share. */
export interface AgentContext {
  /** The address on which endpoints listen. `publicHost` is the address that customers get. */
  bindHost: string;
  publicHost: string;
  tls: TlsMaterial;
  ports: PortAllocator;
  accounts: Accounts;
  log: Log;
}

const namesOfInstances = { postgres: 'pg', mariadb: 'mariadb', mysql: 'mysql' } as const;

/** The record of an instance that is not made yet, with its own port and account. */
export async function newInstance(major: Major, { ports, accounts }: AgentContext): Promise<InstanceRecord> {
  const id = `${namesOfInstances[flavourOf(major)]}${major}-${randomBytes(4).toString('hex')}`;
  return { instance_id: id, major, port: await ports.allocate(), uid: await accounts.allocate() };
}

/**
 * A database: its instances, the endpoint in front of them, and the record that says which instance serves.
 * `HostedDatabases` makes one change of a database at a time.
 */
export class HostedDatabase {
  readonly folder: DatabaseFolder;
  readonly context: AgentContext;
  /** The engine of all of the database's instances. No upgrade or restore changes the engine. */
  readonly engine: Engine;
  readonly endpoint: Endpoint;
  readonly snapshot = new HeldSnapshot();
  private readonly disk: DatabaseDisk;
  record: DatabaseRecord;
  /** Whether a cutover runs. While it runs, only the cutover decides who may enter an instance. */
  isCutting = false;
  /** Whether the removal has begun. From then on the database is not opened again. */
  isDestroyed = false;
  /** The opening that is under way. */
  private opening: Promise<void> | null = null;
  private readonly instances = new Map<string, Instance>();

  constructor(folder: DatabaseFolder, record: DatabaseRecord, context: AgentContext) {
    this.folder = folder;
    this.record = record;
    this.context = context;
    this.engine = engineOf(this.serving.major);
    const servingUrl = (): string => this.requireUrl(this.record.serving);
    this.endpoint = new Endpoint({
      wire: this.engine.wire,
      target: () => this.serving.port,
      holdMs,
      places: () => placesOf(this.record.size),
      readKnownPorts: async () => this.engine.readKnownPorts(servingUrl()),
      endBackend: async (port) => this.engine.endBackend(servingUrl(), port),
      isDiskFull: () => this.disk.isClosed,
    });
    const { database_id, database_name: databaseName, username, size } = record;
    this.disk = new DatabaseDisk({
      engine: this.engine,
      endpoint: this.endpoint,
      owner: { databaseName, username },
      limitBytes: size.storage_gb * 1e9,
      log: context.log.child({ database_id }),
    });
  }

  /** How much of its storage the database uses. Null until it has been counted since the start of the agent. */
  get storage(): DatabaseStorage | null {
    return this.disk.storage;
  }

  get serving(): Instance {
    return this.instanceOf(this.record.serving);
  }

  instanceOf(instanceId: string): Instance {
    const known = this.instances.get(instanceId);
    if (known) return known;
    const described = this.record.instances.find((instance) => instance.instance_id === instanceId);
    if (described === undefined) throw new Error(`the record knows no instance ${instanceId}`);
    const instance = this.makeInstance(described);
    this.instances.set(instanceId, instance);
    return instance;
  }

  /**
   * The URL by which the platform's role connects to an instance. Throws `instance_down` while the instance is not up.
   */
  requireUrl(instanceId: string): string {
    const instance = this.instanceOf(instanceId);
    if (!instance.isUp || instance.adminUrl === null)
      throw new DatabaseHostError('instance_down', `instance ${instanceId} is not up`);
    return instance.adminUrl;
  }

  /** The upgrade or restore of this id. Throws `unknown_upgrade` if it is not the database's current one. */
  requireUpgrade(upgradeId: string): UpgradeRecord {
    const { upgrade } = this.record;
    if (upgrade?.upgrade_id !== upgradeId)
      throw new DatabaseHostError('unknown_upgrade', `there is no upgrade ${upgradeId}`);
    return upgrade;
  }

  /** Whether the upgrade or restore of this id has ever switched the database. */
  hasSwitched(upgradeId: string): boolean {
    const { upgrade, switched } = this.record;
    return switched.includes(upgradeId) || (upgrade?.upgrade_id === upgradeId && upgrade.phase !== 'prepared');
  }

  /**
   * Whether the upgrade or restore of this id has switched the database and is no longer the current one. Nothing is
   * left to do for it.
   */
  isOver(upgradeId: string): boolean {
    return this.record.upgrade?.upgrade_id !== upgradeId && this.hasSwitched(upgradeId);
  }

  /**
   * Starts the endpoint and the serving instance. The other instance of an unfinished upgrade or restore is started
   * too, but not waited for, so that the database is served even if that instance cannot start. Callers at the same
   * time share one attempt. Throws `unknown_database` once the removal has begun.
   */
  async open(): Promise<void> {
    if (this.isDestroyed)
      throw new DatabaseHostError('unknown_database', `database ${this.record.database_id} is being removed`);
    this.opening ??= this.openOnce().finally(() => {
      this.opening = null;
    });
    await this.opening;
  }

  private async openOnce(): Promise<void> {
    const { upgrade, serving } = this.record;
    const needed = upgrade === null || upgrade.phase === 'finished' ? [] : [upgrade.old, upgrade.target];
    await this.giveAccounts();
    await listenStubbornly(this.endpoint.server, this.record.endpoint_port, this.context.bindHost, portWaitMs);
    for (const id of needed) if (id !== serving) this.instanceOf(id).keepStarting();
    await this.serving.start();
  }

  /** Makes the customer's role and database in the serving instance. Does nothing if they were made before. */
  async makeReady(password: string): Promise<void> {
    if (this.record.is_ready) return;
    const { database_name: databaseName, username, serving, size } = this.record;
    await this.engine.makeOwnDatabase(this.requireUrl(serving), { databaseName, username, password, size });
    await this.save({ is_ready: true });
    this.endpoint.release();
  }

  async save(change: Partial<DatabaseRecord>): Promise<void> {
    const next = { ...this.record, ...change };
    try {
      await this.folder.write(next);
    } catch (error) {
      // A write that fails may have replaced the record on disk before, so the record is read again.
      this.record = (await this.folder.read()) ?? this.record;
      throw error;
    }
    this.record = next;
  }

  saveUpgrade(change: Partial<UpgradeRecord>): Promise<void> {
    const { upgrade } = this.record;
    if (upgrade === null) throw new Error('there is no upgrade');
    return this.save({ upgrade: { ...upgrade, ...change } });
  }

  async removeInstance(instanceId: string): Promise<void> {
    const instance = this.instances.get(instanceId);
    if (instance === undefined) return;
    this.instances.delete(instanceId);
    await instance.remove();
    this.context.ports.release(instance.port);
  }

  /**
   * Lets customers into an instance or keeps them out, as the record says. If customers are let in, the sessions that
   * wait at the endpoint are connected.
   */
  async applyAccess(instanceId: string, adminUrl: string): Promise<void> {
    if (this.isCutting || !this.record.is_ready) return;
    const { upgrade, serving, database_name: databaseName, username } = this.record;
    // Before the switch, the target is closed to customers already, and a stage may be working in it.
    if (upgrade?.phase === 'prepared' && upgrade.target === instanceId) return;
    const isOpen = instanceId === serving && upgrade?.are_writes_blocked !== true;
    await this.engine.applyAccess(adminUrl, { databaseName, username, isOpen, upgrade });
    if (!isOpen) return;
    if (upgrade !== null && upgrade.opening.length > 0) await this.saveUpgrade({ opening: [] });
    this.endpoint.release();
  }

  async checkDisk(): Promise<void> {
    const { is_ready: isReady, upgrade } = this.record;
    const server = this.serving.current;
    if (server === null || !isReady || this.isCutting || upgrade?.are_writes_blocked === true) return;
    await this.disk.check(server, upgrade?.phase === 'prepared');
  }

  /** Gives accounts to instances that an earlier version of the agent made without one. */
  private async giveAccounts(): Promise<void> {
    if (this.record.instances.every(({ uid }) => uid !== null)) return;
    const instances: InstanceRecord[] = [];
    for (const instance of this.record.instances)
      instances.push({ ...instance, uid: instance.uid ?? (await this.context.accounts.allocate()) });
    await this.save({ instances });
  }

  async describe(): Promise<DatabaseDescription> {
    const { database_id, mode, endpoint_port, database_name, username, upgrade } = this.record;
    const { isUp, adminUrl, major } = this.serving;
    const sizeBytes = isUp && adminUrl !== null ? await this.engine.readSize(adminUrl, database_name) : null;
    const { bavail, bsize } = await statfs(this.folder.root);
    const told = upgrade && {
      upgrade_id: upgrade.upgrade_id,
      to_major: upgrade.to_major,
      path: upgrade.path,
      phase: upgrade.phase,
      are_writes_blocked: upgrade.are_writes_blocked,
      writes_blocked_ms: upgrade.writes_blocked_ms,
    };
    const address = { host: this.context.publicHost, port: endpoint_port, ca_certificate: this.context.tls.authority };
    const { switched } = this.record;
    const state = {
      major,
      is_up: sizeBytes !== null,
      size_bytes: sizeBytes,
      free_bytes: bavail * bsize,
      switched,
      upgrade: told,
    };
    return { database_id, mode, ...address, database_name, username, ...state };
  }

  /**
   * Removes the database from the disk. A running attempt to open it is awaited first, and can create nothing later.
   */
  async destroy(): Promise<void> {
    this.isDestroyed = true;
    await this.opening?.catch(() => undefined);
    await this.close();
    for (const { instance_id } of this.record.instances) await this.instanceOf(instance_id).remove();
    await this.folder.remove();
  }

  async close(): Promise<void> {
    await Promise.all([this.endpoint.server.listening ? this.endpoint.close() : undefined, this.snapshot.drop()]);
    await Promise.all([...this.instances.values()].map((instance) => instance.stop()));
  }

  private makeInstance({ instance_id: id, major, port, uid: account }: InstanceRecord): Instance {
    if (account === null) throw new Error(`instance ${id} has no account`);
    const { tls, log } = this.context;
    return new Instance({
      folder: this.folder.instanceFolder(id),
      major,
      port,
      account,
      tls,
      log,
      purpose: () => {
        const { upgrade, serving, size, database_name: databaseName } = this.record;
        return { size, databaseName, isFrozen: id !== serving && upgrade?.target !== id };
      },
      onUp: (adminUrl) => this.applyAccess(id, adminUrl),
      onDown: () => {
        if (id === this.record.serving) this.endpoint.hold();
      },
    });
  }
}

/** Holds a transaction whose snapshot a later comparison reads. The snapshot is lost when this process ends. */
class HeldSnapshot {
  private session: SnapshotSession | null = null;

  /** The session with the snapshot; null if no snapshot was taken or the snapshot is lost. */
  async read(): Promise<SnapshotSession | null> {
    if (this.session === null) return null;
    if (!(await this.session.isAlive())) await this.drop();
    return this.session;
  }

  async take(session: SnapshotSession): Promise<void> {
    await this.drop();
    await session.take();
    this.session = session;
  }

  isHolding(session: SnapshotSession): boolean {
    return this.session === session;
  }

  async drop(): Promise<void> {
    const { session } = this;
    this.session = null;
    await session?.close();
  }
}
