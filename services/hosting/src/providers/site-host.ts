import type { LoadFindings } from '@drydock/agent/database';
import type { Skipped } from '@drydock/agent/site';
import type { ArchiveLink, ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { RestoreContents } from '@drydock/contracts/hosting/backups';
import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import type { FencedCall, FencedCallWithProgress } from '@drydock/workflow/definition';

/**
 * A job of the site agent could not dump or load a site's database. `message` is only for the log, because it may quote
 * SQL and values of the customer. `object` and `reason` are for the customer.
 */
export class TransferFailure extends Error {
  override readonly name = 'TransferFailure';
  readonly object: string | null;
  readonly reason: string;
  /** True if the same content fails at every attempt. */
  readonly isPermanent: boolean;

  constructor(message: string, { object, reason, isPermanent, ...options }: ErrorOptions & Told) {
    super(message, options);
    this.object = object;
    this.reason = reason;
    this.isPermanent = isPermanent;
  }
}

type Told = Pick<TransferFailure, 'object' | 'reason' | 'isPermanent'>;

export type { FencedCall, FencedCallWithProgress };

/** Names a site and its mode. On one host, live and sandbox sites share no folder, no role and no database. */
export interface SiteRef {
  siteId: string;
  orgId: string;
  mode: Mode;
}

/** A part of a site, the files or the database, as its host has counted it. */
export interface CountedPart {
  /**
   * `full`: the application was ended, or the database takes no more. `closed`: the database gets no sessions. The
   * files are never `closed`.
   */
  state: 'within' | 'full' | 'closed';
  bytes: number;
  countedAt: Date;
}

/** The disk space of a site. A part is null until it has been counted. The limit holds for each part. */
export interface SiteStorage {
  limitBytes: number;
  files: CountedPart | null;
  database: CountedPart | null;
}

/** A site to create. If `database` is null or absent, the site gets the host's default database. */
interface SiteToCreate {
  domain: string;
  database?: SiteDatabase | null | undefined;
}

/** A site as its host knows it. */
export interface HostedSite {
  url: string;
  /** The id of the live release, which determines both the files and the database in use. */
  currentRelease: string;
  /** Every complete release, including the live one. */
  releases: readonly string[];
  /**
   * Releases that a `stage` has begun and not finished: it failed, was killed, or still runs. `retire` removes them
   * too. Absent for a host that removes them by itself.
   */
  begun?: readonly string[];
  /** The bytes that are free for new releases. */
  freeBytes: number;
  /** The vendor's id of the site's hosting package. Absent for a site that is not at a vendor. */
  vendorPackageId?: string;
}

export interface HostedApp {
  /** Each process that starts after a restart of the application has a greater number. */
  generation: number;
  lastRestartAt: Date | null;
}

/**
 * `generation` is the number of the last process before the restart. Every process with a greater number was started
 * after it.
 */
export interface AppRestarted {
  restartedAt: Date;
  generation: number;
}

/** An archive that can be read, and the values that it must match. */
export interface ArchiveAtHand {
  source: ArchiveSource;
  archiveId: string;
  manifestMac: string;
}

/** An archive to stage. `parents` are the archives on which it depends, the full one first. A full archive has none. */
export interface ArchiveToStage extends ArchiveAtHand {
  parents?: readonly ArchiveAtHand[];
  /** The default is `all`. With `files` the new release shares the database of the live one. */
  contents?: RestoreContents | undefined;
  /** The site that the archives belong to, if they are staged on another site, as in a drill. */
  origin?: Pick<SiteRef, 'siteId' | 'orgId'>;
}

export interface ArchiveToWrite {
  sink: ArchiveSink;
  archiveId: string;
  /** Greater than the sequence number of every earlier archive of the site. */
  sequence: number;
  createdAt: Date;
  /** About how many bytes there are to pack, for the progress. Null if unknown. */
  expectedRawBytes: number | null;
  /**
   * The chain that this archive continues, the full archive first. Only differences from the chain are packed. A full
   * archive has no parents.
   */
  parents?: readonly ArchiveAtHand[];
}

export interface PackedArchive {
  manifestMac: string;
  checksumSha256: string;
  sizeBytes: number;
  rawBytes: number;
  /** Paths that the archive lacks, such as sockets, or that changed while they were read. */
  skipped: Skipped;
}

export interface StagedRelease {
  /** Paths that the host did not restore completely, for example because its file system refuses an attribute. */
  lost: Skipped;
  /** The parts of the database that differ from the original. */
  database: LoadFindings;
}

export interface Probe {
  /** 0 if HTTP gave no answer. */
  httpStatus: number;
  isSqlOk: boolean;
  /** False if the database gave no answer in time, or is starting. Then `isSqlOk` tells nothing about the site. */
  isSqlAnswered: boolean;
  /** The `generation` of the application that has answered. Null if no application answered. */
  appGeneration: number | null;
  /** Details for the log. */
  detail: string;
}

/** Reads from a host, for requests. */
export interface SiteHostReader {
  /** Null when the host has no such site. Rejects when the host does not answer. */
  describe(site: SiteRef, signal?: AbortSignal): Promise<HostedSite | null>;
  /** Null for a site that is no application. Rejects when the host does not answer. */
  describeApp(site: SiteRef, signal?: AbortSignal): Promise<HostedApp | null>;
  /**
   * The databases that a new site may choose from; none if the host offers no choice. Rejects when the host does not
   * answer.
   */
  listDatabases(signal?: AbortSignal): Promise<readonly SiteDatabase[]>;
  /** Null if the host has no such site, or does not count. Rejects when the host does not answer. */
  readStorage(site: SiteRef, signal?: AbortSignal): Promise<SiteStorage | null>;
}

/**
 * Changes sites on a host, for workflow steps. Every call may be repeated with the same arguments. A {@link
 * SiteHostError} is permanent; any other rejection may be transient.
 */
export interface SiteHost extends Omit<SiteHostReader, 'listDatabases' | 'readStorage'> {
  /** The id of the empty release that `create` makes. */
  readonly firstRelease: string;
  /**
   * Whether one call of `stage` reads each segment only once. If so, a cache can drop a segment after its first read.
   */
  readonly readsOnce: boolean;
  /**
   * Makes folder, role, database and an empty first release, unless the site exists already. Resolves with the site as
   * it is served now. SiteHostError `domain_taken`, `database_not_offered`.
   */
  create(site: SiteRef, wanted: SiteToCreate, call: FencedCall): Promise<HostedSite>;
  /** Stops serving and removes everything. A missing site is no error. */
  destroy(site: SiteRef, call: FencedCall): Promise<void>;
  /**
   * Packs files and database of one release into one archive, while the site serves. SiteHostError
   * `content_not_packed`.
   */
  pack(site: SiteRef, releaseId: string, archive: ArchiveToWrite, call: FencedCallWithProgress): Promise<PackedArchive>;
  /**
   * Makes a complete new release beside the live one, which stays in use. Each call begins with an empty release,
   * verifies what it writes, and resolves once the release is on disk. SiteHostError `archive_refused`,
   * `content_not_loaded`, `no_space`.
   */
  stage(
    site: SiteRef,
    releaseId: string,
    archive: ArchiveToStage,
    call: FencedCallWithProgress,
  ): Promise<StagedRelease>;
  /**
   * Closes the site to new requests of visitors. The freeze ends by itself after `ttlMs`. What happens to running
   * requests and to database sessions depends on the host.
   */
  freeze(site: SiteRef, ttlMs: number, call: FencedCall): Promise<void>;
  thaw(site: SiteRef, call: FencedCall): Promise<void>;
  /**
   * Makes `to` the live release in place of `from`. Freezes the site again if its freeze has ended. Does nothing if
   * `to` is live already. SiteHostError `moved` if another release is live.
   */
  switchRelease(site: SiteRef, move: { from: string; to: string }, call: FencedCall): Promise<void>;
  /** Asks the current release over HTTP and SQL, even while the site is frozen. */
  probe(site: SiteRef, call: FencedCall): Promise<Probe>;
  /**
   * Restarts the application. Resolves once the next request is sure to get a fresh process. A repeated call restarts
   * the application once more, which does no harm. SiteHostError `no_app`, `restart_blocked`, `sandbox_unavailable`.
   */
  restartApp(site: SiteRef, call: FencedCall): Promise<AppRestarted>;
  /**
   * Moves a release away at once, and removes its files slowly afterwards. A missing release is no error. SiteHostError
   * `current` for the live release.
   */
  retire(site: SiteRef, releaseId: string, call: FencedCall): Promise<void>;
}

/** The chain in the form that packages/archive takes. A reader then refuses an archive of another site. */
export const linksOf = (
  { siteId, orgId }: Pick<SiteRef, 'siteId' | 'orgId'>,
  archives: readonly ArchiveAtHand[],
): ArchiveLink[] =>
  archives.map(({ source, archiveId, manifestMac }) => ({
    source,
    expected: { archiveId, siteId, orgId, manifestMac },
  }));

export type SiteHostRefusal =
  | 'archive_refused'
  | 'content_not_packed'
  | 'content_not_loaded'
  | 'no_space'
  | 'moved'
  | 'current'
  | 'stale_fence'
  | 'unsupported'
  | 'domain_taken'
  | 'database_not_offered'
  | 'no_app'
  | 'restart_blocked'
  | 'sandbox_unavailable';

/** Content of a site or an archive that is refused at every attempt, in words for the customer. */
export interface RefusedContent {
  /** For example `table "public"."orders"`. Null if unknown. */
  object: string | null;
  reason: string;
}

/** A permanent refusal. `message` is for the log, `content` for the customer. */
export class SiteHostError extends Error {
  readonly refusal: SiteHostRefusal;
  /** Only `content_not_packed` and `content_not_loaded` have it. */
  readonly content: RefusedContent | null;

  constructor(
    refusal: SiteHostRefusal,
    message: string,
    { content, ...options }: ErrorOptions & { content?: RefusedContent } = {},
  ) {
    super(`${refusal}: ${message}`, options);
    this.name = 'SiteHostError';
    this.refusal = refusal;
    this.content = content ?? null;
  }
}

/** Hosts by platform. A platform that this installation does not offer is left out. */
export type SiteHostReaders = Readonly<Partial<Record<SitePlatform, SiteHostReader>>>;
export type SiteHosts = Readonly<Partial<Record<SitePlatform, SiteHost>>>;
type Described = Readonly<Partial<Record<SitePlatform, Pick<SiteHostReader, 'describe' | 'describeApp'>>>>;

interface Placed {
  id: string;
  orgId: string;
  mode: Mode;
  platform: SitePlatform;
}

const siteRefOf = ({ id, orgId, mode }: Omit<Placed, 'platform'>): SiteRef => ({ siteId: id, orgId, mode });

/** Rejects if the installation does not offer the platform. */
export function describeSite(hosts: Described, site: Placed, signal?: AbortSignal): Promise<HostedSite | null> {
  const host = hosts[site.platform];
  if (host === undefined) return Promise.reject(new Error(`no host of platform ${site.platform} is configured`));
  return host.describe(siteRefOf(site), signal);
}

/** Null for a site without an application, and on a platform that runs none or is not configured. */
export function describeApp(hosts: Described, site: Placed, signal?: AbortSignal): Promise<HostedApp | null> {
  return hosts[site.platform]?.describeApp(siteRefOf(site), signal) ?? Promise.resolve(null);
}

/** Null on a platform that does not count or is not configured. */
export function readStorage(hosts: SiteHostReaders, site: Placed, signal?: AbortSignal): Promise<SiteStorage | null> {
  return hosts[site.platform]?.readStorage(siteRefOf(site), signal) ?? Promise.resolve(null);
}

/** Throws if the platform was taken out of the configuration while work was under way. */
export function hostOf(hosts: SiteHosts, platform: SitePlatform): SiteHost {
  const host = hosts[platform];
  if (host === undefined) throw new Error(`no host of platform ${platform} is configured`);
  return host;
}

/** Reads a restored site over HTTP like a visitor, and over SQL with the site's own role. */
export interface DrillProbe {
  /** The SHA-256 of the body at the path, in hex. Null if the status is not 200. */
  hashServed(site: SiteRef, path: string, signal: AbortSignal): Promise<string | null>;
  /** The number of rows. Null if there is no such table. */
  countRows(site: SiteRef, table: { schema: string; name: string }, call: FencedCall): Promise<number | null>;
}
