import { problem } from '@drydock/contracts/platform/problem';
import type { Quota } from '@drydock/contracts/platform/quotas';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '../access/internal-token';
import type { Database, Sql } from '../database/sql';
import { audit } from '../effects/audit';
import { nobodysId } from './parse-request';

interface Owner {
  orgId: string;
  mode: Mode;
}

/** A limit for the number of resources, such as sites, that an organisation may have. */
export interface QuotaRule {
  /** SQL `FROM … WHERE …` for the resources of an organisation ($1) in a mode ($2). */
  counted: string;
  /** The limit of every organisation for which staff have set no other. */
  usualMax: number;
}

/**
 * Throws `quota_exceeded` if the organisation has reached its limit. Must be called in the transaction that adds the
 * resource. Additions of one organisation wait for each other until the end of the transaction, so that two
 * simultaneous additions cannot both take the last place.
 */
export async function assertWithinQuota(sql: Sql, rule: QuotaRule, { orgId, mode }: Owner): Promise<void> {
  await sql.query(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, [`quota ${orgId} ${mode}`]);
  const { limit, used } = await readQuota(sql, rule, { orgId, mode });
  if (used >= limit) throw problem('quota_exceeded', { extra: { limit, used } });
}

async function readQuota(sql: Sql, { counted, usualMax }: QuotaRule, { orgId, mode }: Owner): Promise<Quota> {
  const [row] = await sql.query<{ used: number; limit: number }>(
    `SELECT (SELECT count(*)::int ${counted}) AS used,
       coalesce((SELECT max_count FROM org_quotas WHERE org_id = $1::uuid AND mode = $2::text), $3::int) AS limit`,
    [orgId, mode, usualMax],
  );
  return { org_id: orgId, limit: row?.limit ?? usualMax, used: row?.used ?? 0 };
}

interface QuotaContext<Tx> {
  database: Database<Tx>;
  quota: QuotaRule;
}

export const getQuota = <Tx>({ database, quota }: QuotaContext<Tx>) => ({
  read: async ({ caller }: { caller: Caller }): Promise<{ status: 200; body: Quota }> => ({
    status: 200,
    body: await readQuota(database.sql(), quota, caller),
  }),
});

interface QuotaChange {
  caller: Caller;
  params: { orgId: string };
  /** The new limit. Null restores the usual one. */
  body: { limit: number | null };
}

/**
 * Sets an organisation's limit, in the mode of the caller's key. Only staff may call it. `path` is the path of the
 * endpoint, for the audit log. Throws `org_not_found` for a malformed id.
 */
export const setQuota = <Tx>({ database, quota }: QuotaContext<Tx>, path: string) => ({
  execute: async (tx: Tx, { caller, params, body }: QuotaChange): Promise<{ status: 200; body: Quota }> => {
    const { mode, keyId: actorKeyId } = caller;
    // Only the keys service knows which organisations exist, so every well-formed id is accepted here.
    if (params.orgId === nobodysId) throw problem('org_not_found');
    const sql = database.sql(tx);
    const owner = { orgId: params.orgId, mode };
    if (body.limit === null)
      await sql.query('DELETE FROM org_quotas WHERE org_id = $1::uuid AND mode = $2', [owner.orgId, mode]);
    else
      await sql.query(
        `INSERT INTO org_quotas (org_id, mode, max_count) VALUES ($1::uuid, $2, $3::int)
           ON CONFLICT (org_id, mode) DO UPDATE SET max_count = excluded.max_count`,
        [owner.orgId, mode, body.limit],
      );
    await audit(sql, {
      orgId: owner.orgId,
      mode,
      actorKeyId,
      action: 'quota.set',
      target: `${path}/${owner.orgId}`,
      workflowId: null,
    });
    return { status: 200, body: await readQuota(sql, quota, owner) };
  },
});
