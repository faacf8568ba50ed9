import type { DumpJob, LoadDumpJob, UpgradeComparison, UpgradeStage, VerifyDumpJob } from '@drydock/agent/database/protocol';
import type { Major } from '@drydock/contracts/databases/major';
import type { RunningServer } from '@drydock/process/kept-server';
import type { DatabaseRecord, UpgradeRecord } from './database-folder';
import type { SnapshotSession } from './held-snapshot';
import type { JobWork, Running } from './job-child';
import type { ScratchAccess } from './scratch';
import type { TlsMaterial } from './tls-authority';
import type { Wire } from './wire';

/** The role of an instance, which a cutover changes. */
export interface Purpose {
  size: DatabaseRecord['size'];
  /** The one database that its customer enters; null: it lives for a trial. */
  databaseName: string | null;
  /** It was replaced: whoever enters it reads only. */
  isFrozen: boolean;
}

export interface Start {
  folder: string;
  major: Major;
  /** On loopback, kept for ever. */
  port: number;
  /** As root the server runs under it, an ordinary user's server runs in a box. */
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

/** The two instances of a move and what its record says. */
export interface Moving extends Owner {
  oldUrl: string;
  targetUrl: string;
  fromMajor: Major;
  upgrade: UpgradeRecord;
  fence: string;
}

/** A switch whose sessions are open. Before `seal` nobody has to wait for it. */
export interface Cutover {
  /** The statements that let customers in again, on either instance. */
  readOpening(): Promise<string[]>;
  /** Once it has resolved nobody writes to the old instance. */
  seal(): Promise<void>;
  /** The target holds all that the old one does. Throws `not_caught_up`. */
  bringLevel(lap: (part: string) => void): Promise<void>;
  /** A snapshot of the new instance at the switch, to compare with; null if nothing is compared. */
  snapshot: SnapshotSession | null;
  /** Lets customers into the target. */
  open(opening: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Where a dump is read. */
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

/** How the processes that meet customers' content are begun. */
export interface EngineJobs {
  /** The program that carries all of them out. */
  program: string;
  dump(source: DumpSource, archive: DumpJob): Promise<JobWork>;
  /** Into the target of a restore, from empty. */
  load(moving: Moving, archive: LoadDumpJob): Promise<JobWork>;
  /** Into an instance that lives for this alone. */
  loadOnTrial(
    kind: 'verify_dump' | 'try_dump',
    target: { databaseId: string; scratch: ScratchAccess },
    archive: VerifyDumpJob,
  ): Promise<JobWork>;
  /** Finds what would stop a move. With `trialUrl`, an empty instance of the new major, the schema is made there. */
  precheck(asked: Precheck): Promise<JobWork>;
  /** Null: there is nothing to be done. */
  stage(moving: Moving, stage: Exclude<UpgradeStage, 'compare'>): Promise<JobWork | null>;
}

/** The part of a running job that a comparison needs: when to stop, and where to report progress. */
export type Comparing = Pick<Running<unknown>, 'signal' | 'progress'>;

/** The parts in which Postgres and MySQL differ. The record and the callers decide everything, alike for both. */
export interface Engine {
  /** How its clients begin, and how one is refused. */
  wire: Wire;
  jobs: EngineJobs;
  /** Throws `major_not_installed`. */
  assertInstalled(major: Major): Promise<void>;
  start(start: Start): Promise<RunningServer>;
  /** The customer's role and empty database, from nothing or from what an interrupted attempt has left. */
  makeOwnDatabase(adminUrl: string, wanted: Owner & { password: string; size: DatabaseRecord['size'] }): Promise<void>;
  /** Bytes on disk; null when it does not answer. */
  readSize(adminUrl: string, databaseName: string): Promise<number | null>;
  /** The ports of the sessions that the server has let in. */
  readKnownPorts(adminUrl: string): Promise<ReadonlySet<number>>;
  /** Ends the session that comes from this port. */
  endBackend(adminUrl: string, port: number): Promise<void>;
  /** Customers in or out, as the record says; nothing while the database has not been made yet. */
  settleAccess(adminUrl: string, access: Access): Promise<void>;
  /** How many sessions the customer allows; -1 without a limit. */
  readLimit(adminUrl: string, databaseName: string): Promise<number>;
  openCutover(moving: Moving): Promise<Cutover>;
  /** The frozen old instance against the moment of the switch; null when that was lost. */
  compare(moving: Moving, snapshot: SnapshotSession | null, running: Comparing): Promise<UpgradeComparison>;
  /** Removes everything that a move has made in the old instance, and lets customers in. */
  takeBack(moving: Omit<Moving, 'targetUrl' | 'fromMajor'>): Promise<void>;
}
