import type { Tx } from '../database.store';
import type { OrgRecord } from './org.types';

export const insertOrg = (tx: Tx, org: OrgRecord): Promise<OrgRecord> => tx.org.create({ data: org });

/** The organisation when it is `rootId` or below it; anybody else's is not there. */
export const findOrg = (tx: Tx, rootId: string, orgId: string): Promise<OrgRecord | null> =>
  tx.org.findFirst({ where: { id: orgId, path: { has: rootId } } });

export const listOrgs = (tx: Tx, rootId: string, page: { after: string | null; take: number }): Promise<OrgRecord[]> =>
  tx.org.findMany({
    where: { path: { has: rootId }, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    orderBy: { id: 'desc' },
    take: page.take,
  });

/** The organisations above it and itself, locked against change until the transaction ends, so that what is granted under them stays true. */
export async function lockLineage(tx: Tx, org: OrgRecord): Promise<OrgRecord[]> {
  await tx.$queryRaw`SELECT id FROM orgs WHERE id = ANY(${org.path}::uuid[]) ORDER BY array_length(path, 1) FOR SHARE`;
  const rows = await tx.org.findMany({ where: { id: { in: org.path } } });
  return rows.sort((left, right) => left.path.length - right.path.length);
}

export const updateOrg = (tx: Tx, orgId: string, change: { name?: string; permissions?: string[] }): Promise<OrgRecord> =>
  tx.org.update({ where: { id: orgId }, data: change });

/** Serialises commands that make root organisations; the lock ends with the transaction. */
export async function lockRoots(tx: Tx): Promise<void> {
  await tx.$queryRaw`SELECT pg_advisory_xact_lock(hashtext('drydock.root-orgs'))::text`;
}

export const findRoot = (tx: Tx, name: string): Promise<OrgRecord | null> => tx.org.findFirst({ where: { parentId: null, name } });
