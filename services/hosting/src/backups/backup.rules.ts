import {
  type BackupKind,
  type BackupStatus,
  immutableDays,
  onDemandLimit,
  type SiteBackup,
} from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { RecordedAnswer } from '../sites/probe.rules';
import { isReady, unsupportedReasonOf } from '../sites/site.rules';
import type { Site } from '../sites/site.types';
/** The recorded facts about an archive. A restore refuses an archive that does not match them. */
export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** Bytes of the content, unpacked. */
  rawBytes: number;
  /** The SHA-256 of the manifest, in hex. */
  checksumSha256: string;
  manifestMac: string;
}

/**
 * The facts about a verified archive, which is locked if the storage has locks. Times are ISO 8601 text, because the
 * output of a step is stored as JSON.
 */
export interface KeptBackup {
  completedAt: string;
  /** Null if the storage has no locks. */
  lockedUntil: string | null;
  location: SiteBackup['location'];
}

export interface Backup {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  kind: BackupKind;
  status: BackupStatus;
  sequence: number;
  includesFiles: boolean;
  includesDatabase: boolean;
  /** Null until the backup has completed. */
  archive: StoredArchive | null;
  errorCode: string;
  skipped: SiteBackup['skipped'];
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  /** Null until the backup has completed. Also null if the backup is kept until its deleted site is purged. */
  expiresAt: Date | null;
  lockedUntil: Date | null;
  location: SiteBackup['location'];
}

/**
 * A release takes a quarter more space than its bare bytes, for file system blocks, index pages and the write-ahead
 * log. Every database takes 64 MiB in addition.
 */
const overheadFactor = 1.25;
const overheadBytes = 64 * 2 ** 20;

/** Bytes that a complete new release needs in addition to the live release. */
export const neededBytes = ({ rawBytes }: Pick<StoredArchive, 'rawBytes'>): number =>
  Math.ceil(rawBytes * overheadFactor) + overheadBytes;

export const hasSpace = (neededBytesCount: number, freeBytes: number): boolean => freeBytes >= neededBytesCount;

const dayMs = 24 * 3_600_000;

/** The facts that the rules about backups and restores of a site have in common. */
interface BackupWorld {
  site: Pick<Site, 'status' | 'platform'>;
  unfinished: UnfinishedWorkflow | null;
}

interface Allowance {
  limit: number;
  used: number;
  remaining: number;
  /** The time from which a backup is allowed again. Null while some allowance remains, and in `noAllowance`. */
  nextAt: Date | null;
}

/** The beginning of the window in which on-demand backups count. */
export const allowanceWindowStart = (now: Date): Date => new Date(now.getTime() - dayMs);

/** The allowance of a site on a platform that takes no backups. `nextAt` is null, because waiting does not help. */
export const noAllowance: Allowance = { limit: onDemandLimit, used: 0, remaining: 0, nextAt: null };

/** Counts the on-demand backups of the last 24 hours that did not fail. Other kinds of backups do not count. */
export function allowanceOf(backups: readonly Pick<Backup, 'kind' | 'status' | 'createdAt'>[], now: Date): Allowance {
  const since = allowanceWindowStart(now);
  const counted = backups
    .filter(({ kind, status, createdAt }) => kind === 'on_demand' && status !== 'failed' && createdAt > since)
    .map(({ createdAt }) => createdAt.getTime())
    .sort((a, b) => a - b);
  const remaining = Math.max(0, onDemandLimit - counted.length);
  // `opens` is the time of the backup that must leave the window before another backup is allowed. It is the oldest
  // one, unless the window holds more backups than the limit.
  const opens = remaining > 0 ? undefined : counted[counted.length - onDemandLimit];
  return {
    limit: onDemandLimit,
    used: counted.length,
    remaining,
    nextAt: opens === undefined ? null : new Date(opens + dayMs),
  };
}

/**
 * The reason why no backup may be taken now; null if there is none. `can_backup`, the request and the first step of the
 * workflow use this rule.
 */
export function refuseBackup(world: BackupWorld, allowance: Allowance, now: Date): Refusal | null {
  const refusal = refusalByWorkflow(world.unfinished) ?? refuseByPlatform(world);
  if (refusal !== null) return refusal;
  if (allowance.nextAt === null) return null;
  return {
    code: 'on_demand_limit_reached',
    retryAfterSeconds: Math.max(1, Math.ceil((allowance.nextAt.getTime() - now.getTime()) / 1000)),
  };
}

/**
 * The first reason why the site may not be overwritten with `backup`; null if there is none. The checks come in this
 * order: the existence of the backup, unfinished work on the site, the state of the backup, the platform and the status
 * of the site.
 */
export function refuseRestore(world: BackupWorld, backup: Backup | null, now: Date): Refusal | null {
  const isAtWork = backup === null ? null : refusalByWorkflow(world.unfinished);
  return isAtWork ?? refusePoint(backup, now) ?? refuseByPlatform(world);
}

function refusePoint(backup: Backup | null, now: Date): Refusal | null {
  if (backup === null) return { code: 'backup_not_found' };
  const status = statusAt(backup, now);
  if (status === 'expired') return { code: 'backup_expired' };
  return status === 'completed' ? null : { code: 'backup_not_completed' };
}

function refuseByPlatform({ site }: BackupWorld): Refusal | null {
  if (unsupportedReasonOf(site.platform) !== '') return { code: 'platform_unsupported' };
  return isReady(site.status) ? null : { code: 'site_not_ready' };
}

/** A completed backup counts as expired from `expiresAt` on, even before `expire_backups` has marked it. */
export function statusAt({ status, expiresAt }: Pick<Backup, 'status' | 'expiresAt'>, now: Date): BackupStatus {
  return status === 'completed' && expiresAt !== null && expiresAt <= now ? 'expired' : status;
}

/**
 * The time when the lock of a backup ends. It is rounded up, because S3 keeps whole seconds and a lock must not end
 * early.
 */
export const lockEnd = (completedAt: Date): Date =>
  new Date(Math.ceil((completedAt.getTime() + immutableDays * dayMs) / 1_000) * 1_000);

export const expiryOf = (completedAt: Date, retentionDays: number): Date =>
  new Date(completedAt.getTime() + retentionDays * dayMs);

/** The pause before the next attempt at the nightly backup of a site that was busy, or whose backup failed. */
const pauseMs = 5 * 60_000;

export const lookAgainAt = (now: Date): Date => new Date(now.getTime() + pauseMs);
