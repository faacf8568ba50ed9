import type { DumpJob, LoadDumpJob, UpgradeComparison, UpgradeStage, VerifyDumpJob } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import type { ProcessProof, RunningServer } from '@drydock/process';
import type { Wire } from '../endpoint/wire';
import type { JobWork, Running } from '../jobs/job-child';
import type { DatabaseRecord, UpgradeRecord } from '../on-disk/database-folder';
import type { TlsMaterial } from '../on-disk/tls-authority';

export interface InstanceServer extends RunningServer {
  proof: ProcessProof;
  /** The folder that contains everything the server writes. */
  diskFolder: string;
}

/** The use of an instance in its database. A cutover changes `isFrozen`. */
export interface Purpose {
  size: DatabaseRecord['size'];
  /** The name of the customer's database; null for an instance that is only for a trial. */
  databaseName: string | null;
  /** Whether the instance was replaced by another one. Its server then starts read-only. */
  isFrozen: boolean;
}

export interface Start {
  folder: string;
  major: Major;
  /** The instance's port on the loopback address. It never changes. */
  port: number;
  /**
   * The account under which the server runs if the agent is root. Otherwise the server runs in a box, if this machine
   * has boxes.
   */
  account: number;
  tls: TlsMaterial;
  purpose: Purpose;
}

export interface Owner {
  databaseName: string;
  username: string;
}

export interface Access extends Owner {
  isOpen: boolean;
  upgrade: UpgradeRecord | null;
}

/** An upgrade or a restore: its two instances and its record. */
export interface Moving extends Owner {
  oldUrl: string;
  targetUrl: string;
  fromMajor: Major;
  upgrade: UpgradeRecord;
  fence: string;
}

/**
 * A session for a snapshot. It is opened before the pause of a switch, and the snapshot is taken within it. In Postgres
 * that costs one round trip. In MariaDB it also reads every definition of the database.
 */
export interface SnapshotSession {
  take(): Promise<void>;
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * A cutover whose sessions are already open, so that opening them adds nothing to the time in which nobody can write.
 */
export interface Cutover {
  /**
   * Reads the statements that let customers in again, on the old instance or on the target, and the grants that the
   * lock removes.
   */
  readOpening(): Promise<Pick<UpgradeRecord, 'opening' | 'grants'>>;
  /** Locks customers out of the old instance. No customer can write there once this has resolved. */
  seal(): Promise<void>;
  /**
   * Copies what the target still lacks: the last changes in an upgrade, and the customer's roles or login. `lap` is
   * called after each part. Throws `not_caught_up`.
   */
  bringLevel(lap: (part: string) => void): Promise<void>;
  /** The session for a snapshot of the new instance at the switch; null if no comparison follows. */
  snapshot: SnapshotSession | null;
  /** Lets customers into the target. */
  open(opening: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** An empty server for a check. */
export interface ScratchAccess {
  adminUrl: string;
  /** The instance's port on the loopback address. */
  port: number;
  caCertificate: string;
}

export interface DumpSource {
  databaseId: string;
  databaseName: string;
  adminUrl: string;
  major: Major;
  expectedBytes: number;
  /** The grants on the database before customers were locked out; null if the database still has its grants. */
  grants: UpgradeRecord['grants'];
}

export interface Precheck {
  databaseName: string;
  adminUrl: string;
  major: Major;
  toMajor: Major;
  trialUrl: string | null;
  freeBytes: number;
}

/** Makes the input of the engine's job program, which processes customers' content. */
export interface EngineJobs {
  /** The file of the program for all of these jobs, below `dist`. */
  program: string;
  dump(source: DumpSource, archive: DumpJob): Promise<JobWork>;
  /** The input for the load of an archive into the empty target of a restore. */
  load(moving: Moving, archive: LoadDumpJob): Promise<JobWork>;
  /** The input for the load of an archive into a scratch instance. */
  loadOnTrial(
    kind: 'verify_dump' | 'try_dump',
    target: { databaseId: string; scratch: ScratchAccess },
    archive: VerifyDumpJob,
  ): Promise<JobWork>;
  /**
   * The input for the prechecks of an upgrade. `trialUrl` leads to an empty instance of the new major, in which the
   * schema is made on trial; null without a trial.
   */
  precheck(asked: Precheck): Promise<JobWork>;
  /** The input for a stage of an upgrade or a restore; null if nothing has to be done. */
  stage(moving: Moving, stage: Exclude<UpgradeStage, 'compare'>): Promise<JobWork | null>;
}

/** The part of a running job that a comparison needs: when to stop, and where to report progress. */
export type Comparing = Pick<Running<unknown>, 'signal' | 'progress'>;

/**
 * The parts in which Postgres and MySQL differ. An engine decides nothing: its callers decide by the record of the
 * database, in the same way for both engines.
 */
export interface Engine {
  wire: Wire;
  jobs: EngineJobs;
  /** Throws `major_not_installed` if this machine lacks the programs of the major. */
  assertInstalled(major: Major): Promise<void>;
  start(start: Start): Promise<InstanceServer>;
  /** Makes the customer's role and empty database. Parts that an interrupted attempt has left are removed first. */
  makeOwnDatabase(adminUrl: string, wanted: Owner & { password: string; size: DatabaseRecord['size'] }): Promise<void>;
  /** The size on disk in bytes; null if the server does not answer. */
  readSize(adminUrl: string, databaseName: string): Promise<number | null>;
  /** The names of the files or folders of the log of changes, as a pattern of the shell. */
  logFiles: string;
  /** Removes the files of the log of changes that only a replica could need. It is not called during an upgrade. */
  trimLog(adminUrl: string): Promise<void>;
  /** Whether {@link Engine.keepReadOnly} is in force; null if only a part of it is, so that it must be set again. */
  isReadOnly(adminUrl: string, owner: Owner): Promise<boolean | null>;
  /**
   * Switches a limit for the customer's new sessions on or off. With the limit, they cannot take more space, but can
   * free some. Postgres cannot enforce that: its sessions are read-only by default, but may ask to write. Resolves with
   * whether sessions that began earlier have other rights than new ones.
   */
  keepReadOnly(adminUrl: string, owner: Owner, isOn: boolean): Promise<boolean>;
  /** The ports of the sessions that have logged in. */
  readKnownPorts(adminUrl: string): Promise<ReadonlySet<number>>;
  /** Ends the backend of the session that reaches the server from this port. */
  endBackend(adminUrl: string, port: number): Promise<void>;
  /** Lets customers in if `isOpen`, and otherwise keeps them out. Does nothing before the database was made. */
  applyAccess(adminUrl: string, access: Access): Promise<void>;
  /** The limit of sessions that the customer has set; -1 without a limit. */
  readLimit(adminUrl: string, databaseName: string): Promise<number>;
  openCutover(moving: Moving): Promise<Cutover>;
  /**
   * Compares the frozen old instance with the snapshot of the new one that was taken at the switch. `snapshot` is null
   * if the snapshot was lost.
   */
  compare(moving: Moving, snapshot: SnapshotSession | null, running: Comparing): Promise<UpgradeComparison>;
  /** Removes everything that an upgrade or a restore has made in the old instance, and lets customers in. */
  takeBack(moving: Omit<Moving, 'targetUrl' | 'fromMajor'>): Promise<void>;
}
