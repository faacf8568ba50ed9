import { firstIdOf, type Mode } from '@drydock/contracts/platform/values';
import type { Tx } from '../database.store';
import { findBusySites } from './busy-sites.store';
import type { SiteOfTheNight } from './nightly.rules';

/** Sites in one transaction: a request for one of them waits no longer than it takes to begin the backups of all. */
export const pageSites = 25;
/** More than the time between two turns of a site. */
const lookBackMs = 48 * 3_600_000;

export type NightlySite = SiteOfTheNight & { orgId: string };

/**
 * Locks sites with daily backups whose turn has come, the longest waiting first, until the transaction ends. Sites that
 * somebody else has locked are left to the next sweep.
 */
export async function takeNightlySites(tx: Tx, mode: Mode, now: Date): Promise<NightlySite[]> {
  const sites = await tx.$queryRaw<Array<Omit<NightlySite, 'isBusy' | 'scheduled'>>>`
    SELECT id, org_id AS "orgId", platform::text, status::text, created_at AS "createdAt" FROM sites
    WHERE mode = ${mode}::mode AND daily_backups AND next_backup_at <= ${now} ORDER BY next_backup_at, id LIMIT ${pageSites}
    FOR NO KEY UPDATE SKIP LOCKED`;
  const siteIds = sites.map(({ id }) => id);
  // Ids contain the time, so only the backups of the last days are read.
  const scheduled = await tx.backup.findMany({
    where: { siteId: { in: siteIds }, id: { gte: firstIdOf(new Date(now.getTime() - lookBackMs)) }, kind: 'scheduled' },
    select: { siteId: true, createdAt: true, status: true },
  });
  const busy = await findBusySites(tx, siteIds);
  return sites.map((site) => ({
    ...site,
    isBusy: busy.has(site.id),
    scheduled: scheduled
      .filter(({ siteId }) => siteId === site.id)
      .map(({ createdAt, status }) => ({ createdAt, hasFailed: status === 'failed' })),
  }));
}

export async function setNextLooks(tx: Tx, looks: ReadonlyArray<{ siteId: string; at: Date }>): Promise<void> {
  await tx.$executeRaw`
    UPDATE sites SET next_backup_at = look.at FROM unnest(${looks.map(({ siteId }) => siteId)}::uuid[], ${looks.map(({ at }) => at.toISOString())}::timestamptz[]) look (id, at)
    WHERE sites.id = look.id`;
}

/**
 * Has the sweep look at the site again after its nightly backup has failed. Does nothing for a backup of another kind.
 */
export async function lookAgain(tx: Tx, backupId: string, at: Date): Promise<void> {
  await tx.$executeRaw`
    UPDATE sites SET next_backup_at = ${at} FROM backups WHERE backups.id = ${backupId}::uuid AND backups.kind = 'scheduled' AND sites.id = backups.site_id`;
}
