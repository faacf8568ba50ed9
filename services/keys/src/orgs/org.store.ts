import type { Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import type { OrgRecord } from './org.rules';

const columns = Prisma.sql`a.id, a.parent_id AS "parentId", a.path::text[], a.name, a.permissions,
    a.created_at AS "createdAt"`;

/** Resolves with null if there is a root organisation of that name already. */
export async function insertOrg(tx: Tx, org: OrgRecord): Promise<OrgRecord | null> {
  const [inserted] = await tx.org.createManyAndReturn({ data: [org], skipDuplicates: true });
  return inserted ?? null;
}

/** Finds an organisation. Null if `orgId` is neither `rootId` nor below it. */
export const findOrg = (tx: Reader, rootId: string, orgId: string): Promise<OrgRecord | null> =>
  tx.org.findFirst({ where: { id: orgId, path: { has: rootId } } });

export const listOrgs = (
  tx: Reader,
  rootId: string,
  page: { after: string | null; take: number },
): Promise<OrgRecord[]> =>
  tx.org.findMany({
    where: { path: { has: rootId }, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    orderBy: { id: 'desc' },
    take: page.take,
  });

/**
 * Locks the organisations from the root down to `orgId` until the transaction ends, so that their permissions cannot
 * change after a check. Null if `orgId` is neither `rootId` nor below it. Rows are locked from the root down, so that
 * two transactions cannot deadlock.
 */
export async function lockLineage(tx: Tx, rootId: string, orgId: string): Promise<OrgRecord[] | null> {
  const lineage = await tx.$queryRaw<OrgRecord[]>`
    SELECT ${columns} FROM orgs o JOIN orgs a ON a.id = ANY (o.path)
    WHERE o.id = ${orgId}::uuid AND ${rootId}::uuid = ANY (o.path)
    ORDER BY cardinality(a.path) FOR SHARE OF a`;
  return lineage.length === 0 ? null : lineage;
}

/**
 * Locks the organisation for a change, and the organisations above against changes. Null if `orgId` is neither `rootId`
 * nor below it.
 */
export async function lockForChange(
  tx: Tx,
  rootId: string,
  orgId: string,
): Promise<{ above: OrgRecord[]; org: OrgRecord } | null> {
  const above = await tx.$queryRaw<OrgRecord[]>`
    SELECT ${columns} FROM orgs o JOIN orgs a ON a.id = ANY (o.path) AND a.id <> o.id
    WHERE o.id = ${orgId}::uuid AND ${rootId}::uuid = ANY (o.path)
    ORDER BY cardinality(a.path) FOR SHARE OF a`;
  const [org] = await tx.$queryRaw<OrgRecord[]>`
    SELECT ${columns} FROM orgs a WHERE a.id = ${orgId}::uuid AND ${rootId}::uuid = ANY (a.path) FOR UPDATE`;
  return org === undefined ? null : { above, org };
}

export const updateOrg = (
  tx: Tx,
  orgId: string,
  change: { name?: string; permissions?: string[] },
): Promise<OrgRecord> => tx.org.update({ where: { id: orgId }, data: change });

export const findRoot = (tx: Tx, name: string): Promise<OrgRecord | null> =>
  tx.org.findFirst({ where: { parentId: null, name } });
