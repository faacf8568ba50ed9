import type { LoadFindings } from '@drydock/agent/database';
import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Major } from '@drydock/contracts/databases/major';
import type { Mode } from '@drydock/contracts/platform/values';
import type { FencedCall, FencedCallWithProgress } from '@drydock/workflow/definition';

export type { FencedCall, FencedCallWithProgress };

/** Names a database and its mode: live and sandbox databases never share a folder, an instance or an address. */
export interface DatabaseRef {
  databaseId: string;
  orgId: string;
  mode: Mode;
}

/**
 * The size that was bought. The provider derives memory, connections and quota from it; a local one uses far less than
 * it promises.
 */
export interface InstanceSize {
  vcpu: number;
  ramGb: number;
  storageGb: number;
}

export interface InstanceSpec {
  /** The provider must have its programs; {@link DatabaseReader.listMajors} names them. */
  major: Major;
  databaseName: string;
  username: string;
  /** The database itself stores only a SCRAM verifier. Every repetition of a `create` has the same password. */
  password: string;
  size: InstanceSize;
}

export type UpgradePhase = 'prepared' | 'switched' | 'finished';

/** A database as its provider describes it. */
export interface HostedDatabase {
  /**
   * The address. It never changes, not even by an upgrade. It requires TLS, and TLS and SCRAM end at the engine itself.
   */
  host: string;
  port: number;
  /** PEM of the authority that signed the engine's certificate. */
  caCertificate: string;
  databaseName: string;
  username: string;
  /** The major of the instance that the durable pointer names: only that one takes writes. */
  major: Major;
  /** Whether that instance answers a query now. */
  isUp: boolean;
  /** Bytes on disk of the customer's database; null while it is not up. */
  sizeBytes: number | null;
  /** How many bytes are free on the file system that a target instance would be made on. */
  freeBytes: number;
  /** The ids of the upgrades and restores that have switched it, the newest last. They are never made again. */
  switched: readonly string[];
  /** The upgrade that is under way, or whose old instance is still kept; null if there is none. */
  upgrade: { upgradeId: string; toMajor: Major; phase: UpgradePhase; areWritesBlocked: boolean } | null;
}

/**
 * The way the data moves. `logical`: while the customer writes, with a pause of milliseconds at the cutover. `offline`:
 * writes and reads wait from `copyData` to `cutover`, because the database has something that cannot be replicated; the
 * findings say what.
 */
export type UpgradePath = 'logical' | 'offline';

export interface Finding {
  level: 'INFO' | 'WARNING' | 'ERROR';
  /** Stable snake_case, such as `not_enough_space`, `prepared_transactions`, `extension_missing`, `offline_path`. */
  code: string;
  /** One sentence for the customer. It may name the customer's own tables, never a path or an address. */
  detail: string;
}

export interface UpgradePlan {
  path: UpgradePath;
  /** `createTarget` refuses the upgrade if one of them is an ERROR. */
  findings: readonly Finding[];
  sizeBytes: number;
  /** 2.2 times the size. */
  neededBytes: number;
  freeBytes: number;
  /** An estimate for the offline path, in seconds; 0 for the logical one. */
  pauseSeconds: number;
}

export interface ArchiveToWrite {
  sink: ArchiveSink;
  archiveId: string;
  /** Greater than the number of every earlier archive of the database. */
  sequence: number;
  createdAt: Date;
}

export interface PackedArchive {
  /** Engine major that the dump was taken from. */
  major: Major;
  manifestMac: string;
  checksumSha256: string;
  sizeBytes: number;
  rawBytes: number;
}

/** An archive with its expected facts, and the source to read it from. */
export interface ArchiveToVerify {
  source: ArchiveSource;
  archiveId: string;
  manifestMac: string;
}

export interface VerifiedRestore {
  tables: number;
  rows: number;
  /**
   * The table whose row was read back over TLS as an ordinary client, `"schema"."name"`; null when no table of the
   * backup has a row.
   */
  readFrom: string | null;
  /** Parts of the backup that are missing or could not be proven, although everything else was. For the customer. */
  findings: LoadFindings;
}

/**
 * The result of a trial of a backup's schema. `refused`: the statements that Postgres did not take, the first twenty of
 * them.
 */
export interface TriedSchema {
  tables: number;
  refused: readonly { object: string; reason: string }[];
  findings: LoadFindings;
}

/** A move to a newer major. `upgradeId` is the workflow's id, the same at every repetition. */
export interface Upgrade {
  upgradeId: string;
  toMajor: Major;
  path: UpgradePath;
}

/** Replaces a database's content by a backup of its own or of another database; `upgradeId` is the workflow's id. */
export interface Restore extends UpgradeName {
  /** The major of the target instance: the backup's or a newer one. */
  major: Major;
  /** The id of the database that the archive was made of. */
  sourceId: string;
  archive: ArchiveToVerify;
}

/** Names an upgrade, for a workflow that ends it. */
export type UpgradeName = Pick<Upgrade, 'upgradeId'>;

export interface Cutover {
  /**
   * How long no write was possible, in milliseconds: from the end of the old sessions until the waiting ones went on.
   */
  writesBlockedMs: number;
}

export interface Comparison {
  /**
   * `equal` and `different` compare the frozen old instance with a snapshot of the new one that was taken at the
   * cutover. `undecided`: that snapshot was lost with a process that was killed since, and a table was written after
   * the cutover; everything that could still be compared was equal.
   */
  outcome: 'equal' | 'different' | 'undecided';
  tables: number;
  /** Tables, sequences and large objects that differ or could not be decided. For the log and staff. */
  names: readonly string[];
  /**
   * Derived data that the new version computes differently, with the statements that compute anew the objects made of
   * it.
   */
  recomputed: readonly { object: string; statements: readonly string[]; isEmpty?: boolean | undefined }[];
  /** Names that an earlier comparison of the same upgrade found to differ; only for `undecided`. */
  differed: readonly string[];
}

/**
 * The part for requests. It rejects with a {@link DatabaseProviderError}, or with any other error if the provider does
 * not answer.
 */
export interface DatabaseReader {
  /** The majors of every engine whose programs the provider has. */
  listMajors(signal?: AbortSignal): Promise<readonly Major[]>;
  /** Null when the provider has no such database (never made, half made, or destroyed). */
  describe(database: DatabaseRef, signal?: AbortSignal): Promise<HostedDatabase | null>;
  /**
   * Finds what would stop an upgrade to this major, now; changes nothing. DatabaseProviderError `unknown_database`,
   * `unavailable` (the instance does not answer).
   */
  planUpgrade(database: DatabaseRef, toMajor: Major, signal?: AbortSignal): Promise<UpgradePlan>;
}

/**
 * The part for workflow steps. Every method may be called again with the same arguments, also after a kill -9 of the
 * process that did the work, and has the same result. A {@link DatabaseProviderError} is permanent; after any other
 * rejection try again.
 * An upgrade is `createTarget`, `copySchema`, `copyData`, `catchUp`, `cutover` **(the point of no return)**, `compare`,
 * `finish`, and a day later `retireOld`. Until `cutover` has resolved, `abandon` undoes all of them;
 * `describe().upgrade.phase` says whether a database is before or after it. One durable pointer decides which instance
 * serves: after a kill at any moment the old or the new one serves, and never are both writable.
 */
export interface DatabaseProvider extends DatabaseReader {
  /** Makes an instance with a database that the user owns, served at the address it resolves with. */
  create(database: DatabaseRef, spec: InstanceSpec, call: FencedCall): Promise<HostedDatabase>;
  /**
   * Removes instances, data and address, even in the middle of an upgrade. A database that is not there is no error.
   */
  destroy(database: DatabaseRef, call: FencedCall): Promise<void>;

  /**
   * Packs the database as of one moment into an archive. It reads the instance in use, where reads and writes continue.
   * With `replacedBy` it reads the instance that this restore has replaced, between `cutover` and `finish`.
   */
  pack(
    database: DatabaseRef,
    archive: ArchiveToWrite,
    call: FencedCallWithProgress,
    replacedBy?: UpgradeName,
  ): Promise<PackedArchive>;
  /**
   * Proves that an archive can be restored: loads it into a scratch instance of this major, compares the counts, reads
   * a row back over TLS as an ordinary client, and removes everything. DatabaseProviderError `archive_refused` if it is
   * not the expected archive, `no_space`.
   */
  verifyRestore(
    database: DatabaseRef,
    major: Major,
    archive: ArchiveToVerify,
    call: FencedCallWithProgress,
  ): Promise<VerifiedRestore>;

  /**
   * Loads the schema of an archive, without a row, into a scratch instance of this major, and removes it. The same
   * refusals as `verifyRestore`.
   */
  trySchema(
    database: DatabaseRef,
    major: Major,
    archive: ArchiveToVerify,
    call: FencedCallWithProgress,
  ): Promise<TriedSchema>;

  /**
   * Loads the backup into a whole instance beside the serving one, with the serving one's roles, compares the counts
   * and reads a row back. It always begins from empty. Then `cutover` puts it behind the address, `finish` stops the
   * replaced instance and keeps it, `retireOld` removes it; until the cutover `abandon` undoes everything. Null if it
   * has been switched to already. DatabaseProviderError `archive_refused`, `content_refused` (an object of the
   * backup's), `no_space`, `moved`, `major_not_installed`.
   */
  stageRestore(database: DatabaseRef, restore: Restore, call: FencedCallWithProgress): Promise<VerifiedRestore | null>;

  /**
   * Repeats the prechecks, then makes an empty instance of the new major beside the serving one. DatabaseProviderError
   * `precheck_failed` (findings with ERROR, in `findings`), `no_space`, `moved` (another upgrade is under way).
   */
  createTarget(database: DatabaseRef, upgrade: Upgrade, call: FencedCall): Promise<void>;
  /**
   * Copies the roles with their SCRAM verifiers, and the schema with its keys. From here to the end of the upgrade the
   * customer's DDL is refused with a clear message. It always begins from empty.
   */
  copySchema(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * Copies every row, then indexes, foreign keys, triggers, contents of views and large objects, and runs ANALYZE.
   * `logical`: the customer continues to write, and replication follows. `offline`: from now on sessions end, and new
   * ones wait or are told that the database is being upgraded.
   */
  copyData(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * Waits until the target is less than a moment behind. Does nothing for `offline`. Repeat it right before `cutover`.
   */
  catchUp(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * **The point of no return** is inside: the pointer moves, on disk, to the new instance. Before it: sessions end and
   * new ones wait, writes to the old instance are blocked for good, a marker row arrives, and sequences, roles, large
   * objects and unlogged tables are synchronised. After it: waiting sessions continue at the new instance. If the
   * target does not catch up within seconds, the old instance stays in use and this rejects. Then call `catchUp` and
   * `cutover` again. DatabaseProviderError `moved` if there is no such upgrade. Resolves at once if the pointer has
   * moved already.
   */
  cutover(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<Cutover>;
  /**
   * Compares old and new as of the cutover: every row of every table, sequences, large objects. The customer reads and
   * writes meanwhile.
   */
  compare(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<Comparison>;
  /** Runs ANALYZE, removes the move's own objects from the new instance, stops the old one and keeps it, frozen. */
  finish(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /**
   * Removes the kept old instance. Only after `finish` (otherwise DatabaseProviderError `moved`). One that is not there
   * is no error.
   */
  retireOld(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /**
   * Undoes an upgrade before its point of no return: removes the target and all traces, and the old instance serves and
   * takes DDL again. An upgrade that does not exist is no error. DatabaseProviderError `switched` if the pointer has
   * moved: then it can only go forward.
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
   * The engine refuses an object or a row of the customer's every time. The message names the object and the reason,
   * for the customer.
   */
  | 'content_refused'
  | 'major_not_installed';

/** A permanent refusal. `message` is for the log. */
export class DatabaseProviderError extends Error {
  readonly refusal: DatabaseRefusal;
  /** The message without the refusal. */
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
