import type { Tx } from '../database.store';
import { Prisma } from '../generated/prisma/client';
import { isUsable, shownColumns } from './api-key.columns.store';
import type { ApiKeyRecord, KeyScope } from './api-key.types';

export interface ListPage {
  /** The last key of the page before; null on the first page. */
  after: string | null;
  take: number;
}

/** Above every UUIDv7. */
const newest = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Keys of the organisation and all below it, newest first: one range of one index. */
export const listSubtree = (tx: Tx, { orgId, mode }: KeyScope, { after, take }: ListPage): Promise<ApiKeyRecord[]> =>
  tx.$queryRaw<ApiKeyRecord[]>`
    SELECT ${shownColumns} FROM api_key_listings l JOIN api_keys k ON k.id = l.key_id
    WHERE l.org_id = ${orgId}::uuid AND l.key_id < ${after ?? newest}::uuid
      ${mode === 'sandbox' ? Prisma.sql`AND l.mode = 'sandbox'` : Prisma.empty} AND ${isUsable}
    ORDER BY l.key_id DESC LIMIT ${take}::int`;

/** Keys of the one organisation, newest first; null when it is neither the caller's nor below it, or not there at all. */
export async function listOneOrg(tx: Tx, scope: KeyScope, orgId: string, { after, take }: ListPage): Promise<ApiKeyRecord[] | null> {
  // One round trip: an organisation without keys gives one row of nulls, one out of reach gives none.
  const rows = await tx.$queryRaw<Array<ApiKeyRecord | { id: null }>>`
    SELECT k.* FROM orgs o LEFT JOIN LATERAL (
      SELECT ${shownColumns} FROM api_keys k
      WHERE k.org_id = o.id AND k.id < ${after ?? newest}::uuid
        ${scope.mode === 'sandbox' ? Prisma.sql`AND k.mode = 'sandbox'` : Prisma.empty} AND ${isUsable}
      ORDER BY k.id DESC LIMIT ${take}::int
    ) k ON true
    WHERE o.id = ${orgId}::uuid AND ${scope.orgId}::uuid = ANY (o.path)
    ORDER BY k.id DESC`;
  return rows.length === 0 ? null : rows.filter((row) => row.id !== null);
}
