import type { LoadFindings } from '@drydock/agent/database/load-findings';
import type { ArchiveSink, ArchiveSource } from '@drydock/archive/format/archive-objects';
import type { Major } from '@drydock/contracts/databases/major';
import type { Mode } from '@drydock/contracts/platform/values';
import type { FencedCall, FencedCallWithProgress } from '@drydock/workflow/definition/definition';

export type { FencedCall, FencedCallWithProgress };

/** Which database, in which world: live and sandbox databases never share a folder, an instance or an address. */
export interface DatabaseRef {
  databaseId: string;
  orgId: string;
  mode: Mode;
}

/** The size that was bought. The provider turns it into memory, connections and quota; a local one uses far less than it promises. */
export interface InstanceSize {
  vcpu: number;
  ramGb: number;
  storageGb: number;
}

export interface InstanceSpec {
  /** Its programs must be where the provider runs; {@link DatabaseReader.listMajors} names them. */
  major: Major;
  databaseName: string;
  username: string;
  /** Kept by the database itself as a SCRAM verifier only. The same at every repetition of one `create`. */
  password: string;
  size: InstanceSize;
}

export type UpgradePhase = 'prepared' | 'switched' | 'finished';

/** A database as its provider knows it. */
export interface HostedDatabase {
  /** Stable for ever, through every upgrade. TLS is required there; TLS and SCRAM end at the engine itself. */
  host: string;
  port: number;
  /** PEM of the authority that signed the engine's certificate. */
  caCertificate: string;
  databaseName: string;
  username: string;
  /** The major of the instance that the one durable pointer names: it alone takes writes. */
  major: Major;
  /** Whether that instance answers a query now. */
  isUp: boolean;
  /** Bytes on disk of the customer's database; null while it is not up. */
  sizeBytes: number | null;
  /** How many bytes are free on the file system that a target instance would be made on. */
  freeBytes: number;
  /** Ids of the upgrades and restores that it was switched over by, the newest last. They are never made again. */
  switched: readonly string[];
  /** The upgrade that is under way or whose old instance is still kept; null when there is none. */
  upgrade: { upgradeId: string; toMajor: Major; phase: UpgradePhase; areWritesBlocked: boolean } | null;
}

/**
 * How the data goes over. `logical`: while the customer writes, with a pause of milliseconds at the cutover. `offline`: writes and reads wait from
 * `copyData` to `cutover`, since something in the database cannot be replicated; the findings say what.
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
  /** Any ERROR here means that an upgrade would be refused by `createTarget`. */
  findings: readonly Finding[];
  sizeBytes: number;
  /** 2.2 times the size. */
  neededBytes: number;
  freeBytes: number;
  /** Names of extensions, counts of things moved and so on are in the findings. A guess for the offline path, in seconds; 0 for the logical one. */
  pauseSeconds: number;
}

export interface ArchiveToWrite {
  sink: ArchiveSink;
  archiveId: string;
  /** Greater than that of every archive of the database before. */
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

/** An archive as it must be, and where it is read. */
export interface ArchiveToVerify {
  source: ArchiveSource;
  archiveId: string;
  manifestMac: string;
}

export interface VerifiedRestore {
  tables: number;
  rows: number;
  /** The table whose row was read back over TLS as an ordinary client, `"schema"."name"`; null when no table of the backup has a row. */
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

/** One move to a newer major. `upgradeId` is the workflow's id: the same at every repetition. */
export interface Upgrade {
  upgradeId: string;
  toMajor: Major;
  path: UpgradePath;
}

/** One replacement of what a database holds by a backup of its own or of another one; `upgradeId` is the workflow's id. */
export interface Restore extends UpgradeName {
  /** The major of the target instance: the backup's or a newer one. */
  major: Major;
  /** The id of the database that the archive was made of. */
  sourceId: string;
  archive: ArchiveToVerify;
}

/** Which upgrade, for whoever brings it to its end. */
export type UpgradeName = Pick<Upgrade, 'upgradeId'>;

export interface Cutover {
  /** For how long no write was possible, in milliseconds: from ending the old sessions to letting the held ones through. */
  writesBlockedMs: number;
}

export interface Comparison {
  /**
   * `equal` and `different` compare the frozen old instance with a snapshot of the new one that was taken at the cutover. `undecided`: that snapshot
   * was lost with a process that was killed since, and a table was written after the cutover; everything that could still be compared was equal.
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
  /** An instance of its own, a database owned by the user, served at the address it resolves with. */
  create(database: DatabaseRef, spec: InstanceSpec, call: FencedCall): Promise<HostedDatabase>;
  /** Instances, data and address are gone. Not there is no error. Also while an upgrade is half done. */
  destroy(database: DatabaseRef, call: FencedCall): Promise<void>;

  /**
   * One moment of the database into an archive, read from the instance that serves; reads and writes go on. With `replacedBy`: from the instance that this restore
   * has replaced, between `cutover` and `finish`.
   */
  pack(database: DatabaseRef, archive: ArchiveToWrite, call: FencedCallWithProgress, replacedBy?: UpgradeName): Promise<PackedArchive>;
  /**
   * Proves an archive restorable: into a scratch instance of this major, counts compared, a row read back over TLS as an ordinary client, and everything
   * removed again. DatabaseProviderError `archive_refused` when it is not what it must be, `no_space`.
   */
  verifyRestore(database: DatabaseRef, major: Major, archive: ArchiveToVerify, call: FencedCallWithProgress): Promise<VerifiedRestore>;

  /** The schema of an archive, without a row, into a scratch instance of this major, which is removed again. Refusals as of `verifyRestore`. */
  trySchema(database: DatabaseRef, major: Major, archive: ArchiveToVerify, call: FencedCallWithProgress): Promise<TriedSchema>;

  /**
   * The backup as a whole instance beside the serving one, with the serving one's roles; the counts compared and a row read back. It begins again from empty. Then `cutover` puts it
   * behind the address, `finish` stops the replaced instance and keeps it, `retireOld` removes it; until the cutover `abandon` takes everything back. Null when it has been switched to
   * already. DatabaseProviderError `archive_refused`, `content_refused` (an object of the backup's), `no_space`, `moved`, `major_not_installed`.
   */
  stageRestore(database: DatabaseRef, restore: Restore, call: FencedCallWithProgress): Promise<VerifiedRestore | null>;

  /**
   * The prechecks again, then an empty instance of the new major beside the serving one. DatabaseProviderError `precheck_failed` (findings with ERROR, in
   * `findings`), `no_space`, `moved` (another upgrade is under way).
   */
  createTarget(database: DatabaseRef, upgrade: Upgrade, call: FencedCall): Promise<void>;
  /** From here to the end of the upgrade the customer's DDL is refused with a clear message. Roles with their SCRAM verifiers, and the schema with its keys. Begins again from empty. */
  copySchema(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * Every row, then indexes, foreign keys, triggers, views' contents, large objects and ANALYZE. `logical`: the customer writes on and replication follows.
   * `offline`: from here on the database is held: sessions end, new ones wait or are told that it is being upgraded.
   */
  copyData(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /** Waits until the target is less than a moment behind. Nothing to do for `offline`. Repeat it right before `cutover`. */
  catchUp(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<void>;
  /**
   * **The point of no return** is inside: the pointer moves, on disk, to the new instance. Before it: sessions end and new ones are held, writes to the
   * old instance are blocked for good, a marker row arrives, sequences, roles, large objects and unlogged tables are brought level. After it: held
   * sessions go on at the new instance. When it cannot come level in seconds the old one serves on and this rejects (try `catchUp` and it again);
   * DatabaseProviderError `moved` when there is no such upgrade. Resolves at once when the pointer has moved already.
   */
  cutover(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<Cutover>;
  /** Old against new, as of the cutover: every row of every table, sequences, large objects. The customer reads and writes meanwhile. */
  compare(database: DatabaseRef, upgrade: Upgrade, call: FencedCallWithProgress): Promise<Comparison>;
  /** ANALYZE, what the move needed is removed from the new instance, the old one is stopped and kept, frozen. */
  finish(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /** Removes the kept old instance. Only after `finish` (else DatabaseProviderError `moved`). Not there is no error. */
  retireOld(database: DatabaseRef, upgrade: UpgradeName, call: FencedCall): Promise<void>;
  /**
   * Takes an upgrade back before its point of no return: the target and all traces are removed, the old instance serves and takes DDL again. An upgrade that
   * is not there is no error. DatabaseProviderError `switched` when the pointer has moved: then the only way is forward.
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
  /** The engine refuses an object or a row of the customer's, and will again. The message names the object and the reason, for the customer. */
  | 'content_refused'
  | 'major_not_installed';

/** A definite refusal. `message` is for the log. */
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
