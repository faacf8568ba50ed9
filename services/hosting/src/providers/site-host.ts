import type { LoadFindings } from '@drydock/agent/database/load-findings';
import type { Skipped } from '@drydock/agent/site/skipped-paths';
import type { ArchiveSink, ArchiveSource } from '@drydock/archive/format/archive-objects';
import type { ArchiveLink } from '@drydock/archive/read/open-archive';
import type { RestoreContents } from '@drydock/contracts/hosting/backups';
import type { SiteDatabase, SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import type { FencedCall, FencedCallWithProgress } from '@drydock/workflow/definition/definition';

export type { FencedCall, FencedCallWithProgress };

/** Which site, in which world: live and sandbox sites of one host never share a folder, a role or a database. */
export interface SiteRef {
  siteId: string;
  orgId: string;
  mode: Mode;
}

/** A site that is to be made. `database`: left out, or null, the site gets the one that its host gives by itself. */
export interface SiteToCreate {
  domain: string;
  database?: SiteDatabase | null | undefined;
}

/** A site as its host knows it. */
export interface HostedSite {
  url: string;
  /** Id of the release that is served, which names its database too: the one pointer. */
  currentRelease: string;
  /** Every release that is there, the current one included. */
  releases: readonly string[];
  /** How many bytes are free on the file system that a new release would be staged on. */
  freeBytes: number;
  /** The vendor's id of the site, when it is a hosting package at a vendor. */
  vendorPackageId?: string;
}

/** A site's application. */
export interface HostedApp {
  /** Counts its processes. */
  generation: number;
  lastRestartAt: Date | null;
}

/** `generation`: the processes before; one with a greater number is fresh. */
export interface AppRestarted {
  restartedAt: Date;
  generation: number;
}

/** An archive as it must be, and where it is read. */
export interface ArchiveAtHand {
  source: ArchiveSource;
  archiveId: string;
  manifestMac: string;
}

/** With the archives that it depends on, full one first; left out: it is a full one itself. */
export interface ArchiveToStage extends ArchiveAtHand {
  parents?: readonly ArchiveAtHand[];
  /** The contents to restore; left out: all. With `files` the new release gets the database of the release that is served. */
  contents?: RestoreContents | undefined;
  /** The site that the archives are of, when it is not the one that they are staged on: a drill's. */
  origin?: Pick<SiteRef, 'siteId' | 'orgId'>;
}

export interface ArchiveToWrite {
  sink: ArchiveSink;
  archiveId: string;
  /** Greater than that of every archive of the site before. */
  sequence: number;
  createdAt: Date;
  /** About how much there is to pack, for the progress; null when nobody knows. */
  expectedRawBytes: number | null;
  /** The chain that the archive continues, full one first: only what differs is packed. Left out: a full archive. */
  parents?: readonly ArchiveAtHand[];
}

export interface PackedArchive {
  manifestMac: string;
  checksumSha256: string;
  sizeBytes: number;
  rawBytes: number;
  /** Paths that are not in the archive, such as sockets, or not as they were at one moment. */
  skipped: Skipped;
}

export interface StagedRelease {
  /** Paths that the host did not restore whole, such as one whose attributes its file system does not take. */
  lost: Skipped;
  /** The parts of the database that differ from the original. */
  database: LoadFindings;
}

export interface Probe {
  /** 0: no answer over HTTP. */
  httpStatus: number;
  isSqlOk: boolean;
  /** False: the database gave no answer in time, or is starting. It says nothing about the site. */
  isSqlAnswered: boolean;
  /** Which process of the site's application has answered; null without one. */
  appGeneration: number | null;
  /** For the log. */
  detail: string;
}

/** The part for requests: it only reads from a host. */
export interface SiteHostReader {
  /** Null when the host has no such site. Rejects when the host does not answer. */
  describe(site: SiteRef, signal?: AbortSignal): Promise<HostedSite | null>;
  /** Null for a site that is no application. Rejects when the host does not answer. */
  describeApp(site: SiteRef, signal?: AbortSignal): Promise<HostedApp | null>;
  /** Those among which a new site may choose; none where the host gives what it has. Rejects when the host does not answer. */
  listDatabases(signal?: AbortSignal): Promise<readonly SiteDatabase[]>;
}

/**
 * The part for workflow steps. Every method may be called again with the same arguments and has the same result. A
 * {@link SiteHostError} is permanent; every other rejection may pass.
 */
export interface SiteHost extends Omit<SiteHostReader, 'listDatabases'> {
  /** The id of the empty release that `create` makes. */
  readonly firstRelease: string;
  /** Whether `stage` reads each segment of an archive once: what was read may go at once. */
  readonly readsOnce: boolean;
  /** Folder, role, database, a first empty release, and served at the URL that it resolves with. SiteHostError `database_not_offered`. */
  create(site: SiteRef, wanted: SiteToCreate, call: FencedCall): Promise<HostedSite>;
  /** Serving ends, everything is removed. A site that is not there is no error. */
  destroy(site: SiteRef, call: FencedCall): Promise<void>;
  /** Files and database of one release into one archive, as a snapshot of each; the site goes on serving. SiteHostError `content_not_packed`. */
  pack(site: SiteRef, releaseId: string, archive: ArchiveToWrite, call: FencedCallWithProgress): Promise<PackedArchive>;
  /**
   * A whole new release beside the live one, verified while it is written and synced to disk before this resolves; nothing that is served changes.
   * Begins again from empty. SiteHostError `archive_refused`, `content_not_loaded`, `no_space`.
   */
  stage(site: SiteRef, releaseId: string, archive: ArchiveToStage, call: FencedCallWithProgress): Promise<StagedRelease>;
  /** New requests and database sessions wait, running ones end; it ends by itself after `ttlMs`. */
  freeze(site: SiteRef, ttlMs: number, call: FencedCall): Promise<void>;
  thaw(site: SiteRef, call: FencedCall): Promise<void>;
  /** Moves the one pointer, and freezes again if the site thawed by itself. Nothing happens when it is already there; SiteHostError `moved` when it is at neither. */
  switchRelease(site: SiteRef, move: { from: string; to: string }, call: FencedCall): Promise<void>;
  /** Asks the current release over HTTP and SQL, past a freeze. */
  probe(site: SiteRef, call: FencedCall): Promise<Probe>;
  /**
   * Has the next request answered by a fresh process of the application; resolves once the host would do so. Again: another fresh one, which harms
   * nobody. SiteHostError `no_app`, `restart_blocked`, `sandbox_unavailable`.
   */
  restartApp(site: SiteRef, call: FencedCall): Promise<AppRestarted>;
  /** Out of the way at once, removed slowly afterwards. Never the current one: SiteHostError `current`. Not there is no error. */
  retire(site: SiteRef, releaseId: string, call: FencedCall): Promise<void>;
}

/** A chain as packages/archive takes it: every archive of it must be of this site. */
export const linksOf = ({ siteId, orgId }: Pick<SiteRef, 'siteId' | 'orgId'>, archives: readonly ArchiveAtHand[]): ArchiveLink[] =>
  archives.map(({ source, archiveId, manifestMac }) => ({ source, expected: { archiveId, siteId, orgId, manifestMac } }));

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

/** Content of a site or an archive that is refused every time, in words for the customer who owns it. */
export interface RefusedContent {
  /** `table "public"."orders"`; null when nobody can tell which it is. */
  object: string | null;
  reason: string;
}

/** A definite refusal. `message` is for the log, `content` for the customer. */
export class SiteHostError extends Error {
  readonly refusal: SiteHostRefusal;
  /** The refused content; only `content_not_packed` and `content_not_loaded` have it. */
  readonly content: RefusedContent | null;

  constructor(refusal: SiteHostRefusal, message: string, { content, ...options }: ErrorOptions & { content?: RefusedContent } = {}) {
    super(`${refusal}: ${message}`, options);
    this.name = 'SiteHostError';
    this.refusal = refusal;
    this.content = content ?? null;
  }
}

/** A platform without a host in this installation is left out. */
export type SiteHostReaders = Readonly<Partial<Record<SitePlatform, SiteHostReader>>>;
export type SiteHosts = Readonly<Partial<Record<SitePlatform, SiteHost>>>;
type Described = Readonly<Partial<Record<SitePlatform, Pick<SiteHostReader, 'describe' | 'describeApp'>>>>;

interface Placed {
  id: string;
  orgId: string;
  mode: Mode;
  platform: SitePlatform;
}

export const siteRefOf = ({ id, orgId, mode }: Omit<Placed, 'platform'>): SiteRef => ({ siteId: id, orgId, mode });

/** Throws when the platform has no host here. */
export function describeSite(hosts: Described, site: Placed, signal?: AbortSignal): Promise<HostedSite | null> {
  const host = hosts[site.platform];
  if (host === undefined) return Promise.reject(new Error(`no host of platform ${site.platform} is configured`));
  return host.describe(siteRefOf(site), signal);
}

/** Null for a site that is no application, and on a platform that runs none. */
export function describeApp(hosts: Described, site: Placed, signal?: AbortSignal): Promise<HostedApp | null> {
  return hosts[site.platform]?.describeApp(siteRefOf(site), signal) ?? Promise.resolve(null);
}

/** Throws when the platform has no host here: its configuration was taken away under running work. */
export function hostOf(hosts: SiteHosts, platform: SitePlatform): SiteHost {
  const host = hosts[platform];
  if (host === undefined) throw new Error(`no host of platform ${platform} is configured`);
  return host;
}
