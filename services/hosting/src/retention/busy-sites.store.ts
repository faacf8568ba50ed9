import type { Reader } from '../database.store';
import { siteResourceKey } from '../sites/site-names';

const unfinished = ['queued', 'running', 'needs_attention'];

/** Finds the sites that unfinished work has locked. */
export async function findBusySites(tx: Reader, siteIds: readonly string[]): Promise<Set<string>> {
  const siteOf = new Map(siteIds.map((siteId) => [siteResourceKey(siteId), siteId]));
  const rows = await tx.workflow.findMany({
    where: { resourceKey: { in: [...siteOf.keys()] }, status: { in: unfinished } },
    select: { resourceKey: true },
  });
  return new Set(rows.flatMap(({ resourceKey }) => siteOf.get(resourceKey) ?? []));
}
