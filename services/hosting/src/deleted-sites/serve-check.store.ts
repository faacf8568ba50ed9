import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Reader, Tx } from '../context/database.store';

const minuteMs = 60_000;
/** The pause before the next check, as a share of the time that the site has waited already. */
const share = 1 / 20;
const pauseMsMax = 60 * minuteMs;

/**
 * The next time at which a site that came back at `since` is checked: every minute at first, every hour after a while.
 */
export function nextServeCheck(now: Date, since: Date): Date {
  const waitedMs = now.getTime() - since.getTime();
  return new Date(now.getTime() + Math.min(pauseMsMax, Math.max(minuteMs, waitedMs * share)));
}

export interface WaitingSite {
  siteId: string;
  orgId: string;
  platform: SitePlatform;
}

/** Leaves the site suspended, and schedules checks until it serves. */
export async function waitToServe(tx: Tx, siteId: string, now: Date): Promise<void> {
  await tx.site.update({ where: { id: siteId }, data: { serveCheckAt: nextServeCheck(now, now) } });
}

/** The sites whose check is due, the one that has waited longest first. */
export async function listWaiting(tx: Reader, mode: Mode, now: Date, take: number): Promise<WaitingSite[]> {
  const rows = await tx.site.findMany({
    where: { mode, status: 'suspended', serveCheckAt: { lte: now } },
    orderBy: { serveCheckAt: 'asc' },
    take,
    select: { id: true, orgId: true, platform: true },
  });
  return rows.map(({ id: siteId, ...site }) => ({ siteId, ...site }));
}

/** Makes a site that serves `active`. A site that other work has locked is not changed, and is checked again later. */
export async function admitServing(
  tx: Tx,
  { asked, serving }: { asked: readonly string[]; serving: readonly string[] },
  now: Date,
): Promise<void> {
  const waits = { status: 'suspended', serveCheckAt: { not: null } } as const;
  await tx.site.updateMany({
    where: { id: { in: [...serving] }, ...waits },
    data: { status: 'active', serveCheckAt: null },
  });
  const rows = await tx.site.findMany({
    where: { id: { in: [...asked] }, ...waits },
    select: { id: true, createdAt: true },
  });
  for (const { id, createdAt } of rows) {
    await tx.site.updateMany({ where: { id, ...waits }, data: { serveCheckAt: nextServeCheck(now, createdAt) } });
  }
}
