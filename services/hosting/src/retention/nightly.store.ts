import type { Mode } from '@drydock/contracts/platform/values';
import type { Reader } from '../database.store';
import { findBusySites } from './busy-sites.store';
import type { SiteOfTheNight } from './nightly.rules';

const pageSites = 500;
/** More than the time between two turns of a site. */
const lookBackMs = 48 * 3_600_000;

export interface NightlyPage {
  sites: Array<SiteOfTheNight & { orgId: string }>;
  /** To go on behind; null: this was the last. */
  next: string | null;
}

/** Sites whose plan has daily backups, page by page. */
export async function listNightlySites(tx: Reader, mode: Mode, now: Date, after: string | null): Promise<NightlyPage> {
  const rows = await tx.site.findMany({
    where: { mode, dailyBackups: true, ...(after === null ? {} : { id: { gt: after } }) },
    orderBy: { id: 'asc' },
    take: pageSites,
    select: { id: true, orgId: true, platform: true, status: true, createdAt: true },
  });
  const scheduled = await tx.backup.findMany({
    where: { siteId: { in: rows.map(({ id }) => id) }, kind: 'scheduled', createdAt: { gt: new Date(now.getTime() - lookBackMs) } },
    select: { siteId: true, createdAt: true, status: true },
  });
  const busy = await findBusySites(
    tx,
    rows.map(({ id }) => id),
  );
  const sites = rows.map((site) => ({
    ...site,
    isBusy: busy.has(site.id),
    scheduled: scheduled
      .filter(({ siteId }) => siteId === site.id)
      .map(({ createdAt, status }) => ({ createdAt, hasFailed: status === 'failed' })),
  }));
  return { sites, next: rows.length < pageSites ? null : (rows.at(-1)?.id ?? null) };
}
