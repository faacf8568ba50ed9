import type { Mode } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../database.store';
import { findBusySites } from './busy-sites.store';

/** Handled by one sweep; the next one goes on. */
const batchMax = 500;
/** What a failed attempt has left may be under a lock for as long as a backup is. */
const failedAgeMs = 31 * 24 * 3_600_000;

interface Spent {
  id: string;
  siteId: string;
}

/** Leaves out whatever unfinished work on its site may still read. */
async function withoutBusy<Row extends Spent>(tx: Reader, rows: readonly Row[]): Promise<Row[]> {
  const busy = await findBusySites(
    tx,
    rows.map(({ siteId }) => siteId),
  );
  return rows.filter(({ siteId }) => !busy.has(siteId));
}

/** Completed backups past their retention. Never one that a deleted site may come back from: whoever purges that one says so. */
export async function markExpired(tx: Tx, mode: Mode, now: Date): Promise<number> {
  const past = await tx.backup.findMany({
    where: { mode, status: 'completed', expiresAt: { lte: now } },
    orderBy: { expiresAt: 'asc' },
    take: batchMax,
    select: { id: true, siteId: true },
  });
  const last = await tx.deletedSite.findMany({
    // A site that was brought back has other backups; the one that it came out of ends as they do.
    where: { backupId: { in: past.map(({ id }) => id) }, purgedAt: null, restoredAt: null },
    select: { backupId: true },
  });
  const needed = new Set(last.map(({ backupId }) => backupId));
  const spent = await withoutBusy(
    tx,
    past.filter(({ id }) => !needed.has(id)),
  );
  const ids = spent.map(({ id }) => id);
  const { count } = await tx.backup.updateMany({ where: { id: { in: ids }, status: 'completed' }, data: { status: 'expired' } });
  return count;
}

export interface Leftover extends Spent {
  orgId: string;
  mode: Mode;
  /** Null: it failed, and nobody knows which of its attempts have left something. */
  storageKey: string | null;
}

/** Backups that are over, whose data is still there and under no lock. */
export async function listLeftovers(tx: Reader, mode: Mode, now: Date): Promise<Leftover[]> {
  const unlocked = { OR: [{ lockedUntil: null }, { lockedUntil: { lte: now } }] };
  const rows = await tx.backup.findMany({
    where: {
      mode,
      purgedAt: null,
      AND: [unlocked, { OR: [{ status: 'expired' }, { status: 'failed', createdAt: { lte: new Date(now.getTime() - failedAgeMs) } }] }],
    },
    orderBy: { id: 'asc' },
    take: batchMax,
    select: { id: true, siteId: true, orgId: true, mode: true, storageKey: true },
  });
  return withoutBusy(tx, rows);
}

export async function markPurged(tx: Tx, ids: readonly string[], at: Date): Promise<void> {
  await tx.backup.updateMany({ where: { id: { in: [...ids] } }, data: { purgedAt: at } });
}
