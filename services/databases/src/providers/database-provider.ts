import type { LoadFindings } from '@drydock/agent/database';
import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Major } from '@drydock/contracts/databases/major';
import type { Mode } from '@drydock/contracts/platform/values';
import type { FencedCall, FencedCallWithProgress } from '@drydock/workflow/definition';

export type { FencedCall, FencedCallWithProgress };

/** Names a database. Live and sandbox databases never share a folder, an instance or an address. */
export interface DatabaseRef {
  databaseId: string;
  orgId: string;
  mode: Mode;
}

/**
 * The size that the customer has chosen. The provider derives memory, connections and the limit of disk space from it.
 */
export interface InstanceSize {
  vcpu: number;
  ramGb: number;
  storageGb: number;
}

export interface InstanceSpec {
  /** The major that the instance runs. It must be one of {@link DatabaseReader.listMajors}. */
  major: Major;
  databaseName: string;
  username: string;
  /** The password of the user. It is the same in each repetition of a `create`. The engine stores only a hash of it. */
  password: string;
  size: InstanceSize;
}

export type UpgradePhase = 'prepared' | 'switched' | 'finished';

/** A database as its provider reports it. */
export interface HostedDatabase {
  /**
   * The address, which no upgrade changes. Clients must use TLS. The engine itself terminates TLS and checks the
   * password.
   */
  host: string;
  port: number;
  /** PEM of the authority that signed the engine's certificate. */
  caCertificate: string;
  databaseName: string;
  username: string;
  /** The major of the serving instance, which is the only instance that takes writes. */
  major: Major;
  /** Whether the serving instance answers queries now. */
  isUp: boolean;
  /** The size of the customer's database on disk, in bytes; null while the instance is down. */
  sizeBytes: number | null;
  /** The free bytes of the file system on which a target instance would be made. */
  freeBytes: number;
  /**
   * The ids of the upgrades and restores that have switched the database, newest last. The provider does not carry
   * these out again. The database agent keeps the last hundred.
   */
  switched: readonly string[];
  /** The upgrade or restore that is under way or whose old instance is still kept; null if there is none. */
  upgrade: { upgradeId: string; toMajor: Major; phase: UpgradePhase; areWritesBlocked: boolean } | null;
}

/** How much of its storage a database used at the last count. */
export interface CountedStorage {
  /** `full`: above its storage, it takes no more. `closed`: more than a fifth above, it gets no sessions. */
  state: 'within' | 'full' | 'closed';
  limitBytes: number;
  dataBytes: number;
  /** The log of changes, which has the same limit while an upgrade copies the data; null at any other time. */
  logBytes: number | null;
  countedAt: Date;
}

/**
 * How an upgrade moves the data. `logical`: the customer writes meanwhile, and the switch usually takes less than a
 * second. `offline`: reads and writes wait from `copyData` to `cutover`, because the database has content that
 * replication could not follow, or only too slowly. The findings name this content.
 */
export type UpgradePath = 'logical' | 'offline';

export interface Finding {
  level: 'INFO' | 'WARNING' | 'ERROR';
  /**
   * A stable code in snake_case, such as `not_enough_space`, `prepared_transactions`, `extension_missing`,
   * `offline_path`.
   */
  code: string;
  /** A sentence for the customer. It may name the customer's own tables, but no path and no address. */
  detail: string;
}

export interface UpgradePlan {
  path: UpgradePath;
  /** The findings of the prechecks. If one of them has the level ERROR, `createTarget` refuses the upgrade. */
  findings: readonly Finding[];
  sizeBytes: number;
  /** The bytes that the target instance needs: 2.2 times the size. */
  neededBytes: number;
  freeBytes: number;
  /** The estimated pause in seconds. It is 0 on the logical path. */
  pauseSeconds: number;
}

export interface ArchiveToWrite {
  sink: ArchiveSink;
  archiveId: string;
  /**
   * The sequence number of the archive. A stored archive has a greater number than all earlier archives of its
   * database.
   */
  sequence: number;
  createdAt: Date;
}

export interface PackedArchive {
  /** The major of the engine from which the dump was taken. */
  major: Major;
  manifestMac: string;
  checksumSha256: string;
  sizeBytes: number;
  rawBytes: number;
}

/** An archive, with the id and the manifest MAC that it must have. */
export interface ArchiveToVerify {
  source: ArchiveSource;
  archiveId: string;
  manifestMac: string;
}

export interface VerifiedRestore {
  tables: number;
  rows: number;
  /**
   * The table from which a row was read back, quoted as the engine quotes names, such as `"schema"."name"`. Null if no
   * row was read: every table is empty, row security hides the rows, or `stageRestore` has loaded an archive of MySQL
   * or MariaDB.
   */
  readFrom: string | null;
  /** The parts of the backup that are missing, changed or unproven after the load, for the customer. */
  findings: LoadFindings;
}

/**
 * The result of the trial load of a backup's schema. `refused` has the first twenty statements that Postgres refused.
 * In MySQL and MariaDB it is empty: the first refused table or sequence ends the trial with `content_refused`, and
 * other refused objects are `findings`.
 */
export interface TriedSchema {
  tables: number;
  refused: readonly { object: string; reason: string }[];
  findings: LoadFindings;
}

/** An upgrade to a newer major. `upgradeId` is the id of its workflow, so it is the same at every repetition. */
export interface Upgrade {
  upgradeId: string;
  toMajor: Major;
  path: UpgradePath;
}

/**
 * A restore replaces the content of a database by that of a backup of this or another database. `upgradeId` is the id
 * of the restore's workflow.
 */
export interface Restore extends UpgradeName {
  /** The major of the target instance: the backup's major or a newer major. */
  major: Major;
  /** The id of the database from which the backup was taken. */
  sourceId: string;
  archive: ArchiveToVerify;
}

/** The id of an upgrade or a restore that has begun. */
export type UpgradeName = Pick<Upgrade, 'upgradeId'>;

export interface Cutover {
  /**
   * The milliseconds in which no write was possible: from the moment when the old instance was closed to customers
   * until waiting sessions continued at the new one. 0 if a repeated call finds no record of the duration.
   */
  writesBlockedMs: number;
}

export interface Comparison {
  /**
   * The result of comparing the frozen old instance with the new one as it was at the switch. `undecided`: an object
   * differs or could not be compared, and a change after the switch may be the cause. This happens if the snapshot of
   * the switch was lost, or if a table or sequence was altered or replaced since. `undecided` is also the result once
   * the upgrade is over.
   */
  outcome: 'equal' | 'different' | 'undecided';
  tables: number;
  /** The tables, sequences and large objects that differ or could not be compared. */
  names: readonly string[];
  /**
   * Objects whose derived data the new version computes differently. `isEmpty` marks a materialized view that the new
   * version could not fill. The `statements` compute the data of an object anew.
   */
  recomputed: readonly { object: string; statements: readonly string[]; isEmpty?: boolean | undefined }[];
  /** Only for `undecided`: names that differed in an earlier comparison of the same upgrade. */
  differed: readonly string[];
}

/**
 * The provider for handlers, which only reads. A call rejects with a {@link DatabaseProviderError}, or with another
 * error, for example if the provider cannot be reached.
 */
export interface DatabaseReader {
  /** The majors, of all engines, whose programs the provider has. */
  listMajors(signal?: AbortSignal): Promise<readonly Major[]>;
  /**
   * The database as the provider reports it. Null if the database was never made, if its creation has not finished, or
   * if it was destroyed.
   */
  describe(database: DatabaseRef, signal?: AbortSignal): Promise<HostedDatabase | null>;
  /** Null if the database does not exist, or has not been counted since the start of the provider. */
  readStorage(database: DatabaseRef, signal?: AbortSignal): Promise<CountedStorage | null>;
  /** The storage of all databases that have been counted, by their ids. */
  listStorage(signal?: AbortSignal): Promise<ReadonlyMap<string, CountedStorage>>;
  /**
   * Finds everything that would stop an upgrade to this major now. Changes nothing in the database. Rejects with
   * DatabaseProviderError `unknown_database` or `major_not_installed`, or with `unavailable` if the instance does not
   * answer.
   */
  planUpgrade(database: DatabaseRef, toMajor: Major, signal?: AbortSignal): Promise<UpgradePlan>;
}

/**
 * The whole provider, for workflow steps. Every method may be repeated with the same arguments, even after a kill -9 of
 * the process that did the work. A {@link DatabaseProviderError} is permanent, except for the refusals `unavailable`
 * and `stale_fence`. After these two, and after any other error, the call is repeated.
 *
 * An upgrade calls `createTarget`, `copySchema`, `copyData`, `catchUp`, `cutover` **(the point of no return)**,
 * `compare`, `finish`, and later `retireOld`. One pointer on disk decides which instance serves. `cutover` moves the
 * pointer, and before that `abandon` undoes everything. After a kill at any moment either the old or the new instance
 * serves, and the two never accept writes at the same time.
 */
export interface DatabaseProvider extends DatabaseReader {
  /** Makes an instance with a database that `spec.username` owns. Resolves with the database and its address. */
  create(database: DatabaseRef, spec: InstanceSpec, call: FencedCall): Promise<HostedDatabase>;
  /** Removes the instances, data and address of a database, even during an upgrade. A missing database is no error. */
  destroy(database: DatabaseRef, call: FencedCall): Promise<void>;

  /**
   * Packs the database as of one moment into an archive. By default the serving instance is read, where reads and
   * writes continue. If `replacedBy` names a restore, the instance that this restore has replaced is read instead. That
   * is possible between `cutover` and `finish`.
   */
  pack(
    database: DatabaseRef,
    archive: ArchiveToWrite,
    call: FencedCallWithProgress,
    replacedBy?: UpgradeName,
  ): Promise<PackedArchive>;
  /**
   * Proves that an archive can be restored: loads it into a scratch instance of this major, compares the row counts
   * (MySQL and MariaDB: checksums), reads a row back over TLS as an ordinary client, and removes the instance. Rejects
   * with DatabaseProviderError `archive_refused` if the archive is not the expected archive, `content_refused` if the
   * engine refuses an object or a row, or `no_space`.
   */
  verifyRestore(
    database: DatabaseRef,
    major: Major,
    archive: ArchiveToVerify,
    call: FencedCallWithProgress,
  ): Promise<VerifiedRestore>;

  /**
   * Loads the schema of an archive without any row into a scratch instance of this major, and removes the instance.
   * Rejects as `verifyRestore` does.
   */
  trySchema(
    database: DatabaseRef,
    major: Major,
    archive: ArchiveToVerify,
    call: FencedCallWithProgress,
  ): Promise<TriedSchema>;

  /**
   * Loads the backup into a new instance beside the serving instance, with the roles of the serving instance. Compares
   * the row counts (MySQL and MariaDB: checksums), and in Postgres reads a row back. A repetition begins with an empty
   * instance. Resolves with null if the restore has already switched the database. Rejects with DatabaseProviderError
   * `content_refused` if the engine refuses an object of the backup, or with `archive_refused`, `no_space`, `moved` or
   * `major_not_installed`.
   */
  stageRestore(database: DatabaseRef, restore: Restore, call: FencedCallWithProgress): Promise<VerifiedRestore | null>;

  /**
   * Makes an empty instance of the new major beside the serving instance. The first call of an upgrade repeats the
   * prechecks before it makes the instance. Rejects with DatabaseProviderError `precheck_failed` if a finding is an
   * ERROR or the logical path is no longer possible, or with `moved` if another upgrade or restore is under way.
   */
  createTarget(database: DatabaseRef, upgrade: Upgrade, call: FencedCall): Promise<void>;
  /**
   * Copies the roles with the verifiers of their passwords, and the schema with its keys. From here to the end of the
   * upgrade Postgres refuses the customer's DDL with a clear message. A repetition begins with an empty database. In
   * MySQL and MariaDB this stage does nothing, and `copyData` copies the schema too.
   */
  copySchema(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * Copies all rows, indexes, foreign keys, triggers, large objects and materialized views, and runs ANALYZE.
   * `logical`: the customer continues to write, and the changes are replicated. `offline`: all sessions are ended
   * first. New sessions wait for a while and are then told that the database is being moved.
   */
  copyData(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * On the `logical` path, waits until the target is less than a second behind the old instance. An upgrade must repeat
   * this call right before `cutover`.
   */
  catchUp(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * Switches the database to the new instance. **The point of no return** is the move of the pointer on disk. Before
   * the move, sessions end, new sessions wait, and the target gets the last changes. After the move, the waiting
   * sessions continue at the new instance. If the target does not catch up within seconds, the old instance is opened
   * again and the call rejects. `catchUp` and `cutover` may then be called again. Rejects with DatabaseProviderError
   * `moved` if the provider does not know the upgrade. Resolves at once if the pointer was moved before.
   */
  cutover(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<Cutover>;
  /**
   * Compares every row of every table and the large objects of both instances as they were at the switch, and checks
   * that no sequence of the new instance is behind. The customer reads and writes meanwhile.
   */
  compare(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<Comparison>;
  /**
   * Stops the old instance, whose content is frozen, and keeps it. In Postgres this call first removes the upgrade's
   * own objects from the new instance and runs ANALYZE there.
   */
  finish(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /**
   * Removes the old instance that was kept. Rejects with DatabaseProviderError `moved` before `finish`. An instance
   * that is already gone is no error.
   */
  retireOld(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /**
   * Undoes an upgrade or a restore before its point of no return. The target is removed, and the old instance takes DDL
   * again. An upgrade that the provider does not know is no error. Rejects with DatabaseProviderError `switched` if the
   * pointer has been moved. The upgrade can then only be completed.
   */
  abandon(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
}

export type DatabaseRefusal =
  | 'unknown_database'
  | 'unavailable'
  | 'stale_fence'
  | 'precheck_failed'
  | 'no_space'
  | 'moved'
  | 'switched'
  | 'archive_refused'
  /**
   * The engine refuses an object or a row of the customer, and would refuse every repetition. `detail` names the object
   * and the reason, for the customer.
   */
  | 'content_refused'
  | 'major_not_installed';

/**
 * The error with which the provider refuses a call. All refusals are permanent, except `unavailable` and `stale_fence`.
 * `message` is for the log.
 */
export class DatabaseProviderError extends Error {
  readonly refusal: DatabaseRefusal;
  /** The message without the name of the refusal. */
  readonly detail: string;
  /** The findings of the prechecks, for `precheck_failed`; otherwise empty. */
  readonly findings: readonly Finding[];

  constructor(refusal: DatabaseRefusal, message: string, options?: ErrorOptions & { findings?: readonly Finding[] }) {
    super(`${refusal}: ${message}`, options);
    this.name = 'DatabaseProviderError';
    this.refusal = refusal;
    this.detail = message;
    this.findings = options?.findings ?? [];
  }
}
