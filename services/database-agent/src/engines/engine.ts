import type { DumpJob, LoadDumpJob, UpgradeComparison, UpgradeStage, VerifyDumpJob } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import type { RunningServer } from '@drydock/process';
import type { Wire } from '../endpoint/wire';
import type { JobWork, Running } from '../jobs/job-child';
import type { DatabaseRecord, UpgradeRecord } from '../on-disk/database-folder';
import type { TlsMaterial } from '../on-disk/tls-authority';

/** The role of an instance, which a cutover changes. */
export interface Purpose {
  size: DatabaseRecord['size'];
  /** The name of the customer's database; null for an instance that is only for a trial. */
  databaseName: string | null;
  /** The instance was replaced by another: its customer may only read. */
  isFrozen: boolean;
}

export interface Start {
  folder: string;
  major: Major;
  /** The instance's port on loopback. It never changes. */
  port: number;
  /** The account that the server runs under. If the host is not root, the server runs in a box instead. */
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

/** The two instances of a move and its record. */
export interface Moving extends Owner {
  oldUrl: string;
  targetUrl: string;
  fromMajor: Major;
  upgrade: UpgradeRecord;
  fence: string;
}

/** A session that is opened in advance, so that taking the snapshot costs one round trip. */
export interface SnapshotSession {
  /** Fixes the snapshot at this moment. */
  take(): Promise<void>;
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

/** A switch with open sessions. Nobody waits for it before `seal`. */
export interface Cutover {
  /** The statements that let customers in again, on either instance. */
  readOpening(): Promise<string[]>;
  /** Locks customers out of the old instance: once it has resolved nobody writes there. */
  seal(): Promise<void>;
  /** Waits until the target has every change of the old instance. Throws `not_caught_up`. */
  bringLevel(lap: (part: string) => void): Promise<void>;
  /** A snapshot of the new instance at the switch, to compare with; null if nothing is compared. */
  snapshot: SnapshotSession | null;
  /** Lets customers into the target. */
  open(opening: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** A server with nothing in it. */
export interface ScratchAccess {
  adminUrl: string;
  /** The instance's port on loopback. */
  port: number;
  caCertificate: string;
}

/** The place from which a dump is read. */
export interface DumpSource {
  databaseId: string;
  databaseName: string;
  adminUrl: string;
  major: Major;
  expectedBytes: number;
}

/** The input of the prechecks before a move to a newer major. */
export interface Precheck {
  databaseName: string;
  adminUrl: string;
  major: Major;
  toMajor: Major;
  trialUrl: string | null;
  freeBytes: number;
}

/** Starts the programs that process customers' content. */
export interface EngineJobs {
  /** The file of the program for all of these jobs. */
  program: string;
  dump(source: DumpSource, archive: DumpJob): Promise<JobWork>;
  /** Loads an archive into the empty target of a restore. */
  load(moving: Moving, archive: LoadDumpJob): Promise<JobWork>;
  /** Loads an archive into an instance that exists only for this. */
  loadOnTrial(
    kind: 'verify_dump' | 'try_dump',
    target: { databaseId: string; scratch: ScratchAccess },
    archive: VerifyDumpJob,
  ): Promise<JobWork>;
  /** Finds what would stop a move. With `trialUrl`, an empty instance of the new major, the schema is made there. */
  precheck(asked: Precheck): Promise<JobWork>;
  /** Runs a stage. Null when nothing has to be done. */
  stage(moving: Moving, stage: Exclude<UpgradeStage, 'compare'>): Promise<JobWork | null>;
}

/** The part of a running job that a comparison needs: when to stop, and where to report progress. */
export type Comparing = Pick<Running<unknown>, 'signal' | 'progress'>;

/**
 * The parts in which Postgres and MySQL differ. An engine only carries out. What it carries out is decided by its
 * callers, from the database's record, in the same way for both.
 */
export interface Engine {
  /** Reads and writes the first messages of its clients. */
  wire: Wire;
  jobs: EngineJobs;
  /** Throws `major_not_installed`. */
  assertInstalled(major: Major): Promise<void>;
  start(start: Start): Promise<RunningServer>;
  /** Makes the customer's role and empty database, from nothing or from the leftovers of an interrupted attempt. */
  makeOwnDatabase(adminUrl: string, wanted: Owner & { password: string; size: DatabaseRecord['size'] }): Promise<void>;
  /** The size on disk in bytes; null if the server does not answer. */
  readSize(adminUrl: string, databaseName: string): Promise<number | null>;
  /** The ports of the sessions that the server has let in. */
  readKnownPorts(adminUrl: string): Promise<ReadonlySet<number>>;
  /** Ends the session that comes from this port. */
  endBackend(adminUrl: string, port: number): Promise<void>;
  /** Lets customers in or keeps them out, as the record says. Does nothing before the database was made. */
  settleAccess(adminUrl: string, access: Access): Promise<void>;
  /** The number of sessions that the customer allows; -1 without a limit. */
  readLimit(adminUrl: string, databaseName: string): Promise<number>;
  openCutover(moving: Moving): Promise<Cutover>;
  /** Compares the frozen old instance with the snapshot of the new one at the switch; null if the snapshot was lost. */
  compare(moving: Moving, snapshot: SnapshotSession | null, running: Comparing): Promise<UpgradeComparison>;
  /** Removes everything that a move has made in the old instance, and lets customers in. */
  takeBack(moving: Omit<Moving, 'targetUrl' | 'fromMajor'>): Promise<void>;
}
