import type { Reader } from '../database.store';
import { Prisma } from '../generated/prisma/client';
import { isUsable, shownColumns } from './api-key.columns.store';
import type { ApiKeyRecord, KeyScope } from './api-key.types';

export interface ListPage {
  /** The last key of the previous page; null for the first page. */
  after: string | null;
  take: number;
}

/** Above every UUIDv7. */
const newest = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const inSight = (table: Prisma.Sql, { mode }: KeyScope): Prisma.Sql =>
  mode === 'sandbox' ? Prisma.sql`AND ${table}.mode = 'sandbox'` : Prisma.empty;

/**
 * Reads one range of one index, however large the subtree is. OFFSET 0 keeps the planner from joining: it would read
 * half of all keys to merge them with a page from the middle of the list.
 */
export const subtreeQuery = (scope: KeyScope, { after, take }: ListPage): Prisma.Sql => Prisma.sql`
  SELECT k.* FROM api_key_listings l
  CROSS JOIN LATERAL (SELECT ${shownColumns} FROM api_keys k WHERE k.id = l.key_id AND ${isUsable} OFFSET 0) k
  WHERE l.org_id = ${scope.orgId}::uuid AND l.key_id < ${after ?? newest}::uuid ${inSight(Prisma.sql`l`, scope)}
  ORDER BY l.key_id DESC LIMIT ${take}::int`;

/** One round trip: an organisation without keys gives one row of nulls, one out of reach gives no row. */
export const oneOrgQuery = (scope: KeyScope, orgId: string, { after, take }: ListPage): Prisma.Sql => Prisma.sql`
  SELECT k.* FROM orgs o LEFT JOIN LATERAL (
    SELECT ${shownColumns} FROM api_keys k
    WHERE k.org_id = o.id AND k.id < ${after ?? newest}::uuid ${inSight(Prisma.sql`k`, scope)} AND ${isUsable}
    ORDER BY k.id DESC LIMIT ${take}::int
  ) k ON true
  WHERE o.id = ${orgId}::uuid AND ${scope.orgId}::uuid = ANY (o.path)
  ORDER BY k.id DESC`;

/** Keys of the organisation and all below it, newest first. */
export const listSubtree = (tx: Reader, scope: KeyScope, page: ListPage): Promise<ApiKeyRecord[]> =>
  tx.$queryRaw<ApiKeyRecord[]>(subtreeQuery(scope, page));

/** Keys of the one organisation, newest first; null if it is neither the caller's nor below it, or does not exist. */
export async function listOneOrg(
  tx: Reader,
  scope: KeyScope,
  orgId: string,
  page: ListPage,
): Promise<ApiKeyRecord[] | null> {
  const rows = await tx.$queryRaw<Array<ApiKeyRecord | { id: null }>>(oneOrgQuery(scope, orgId, page));
  return rows.length === 0 ? null : rows.filter((row) => row.id !== null);
}
