import type { Mode } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import type { KeyRights } from '../api-keys/api-key.rules';
import type { HashedSecret } from '../secrets/api-key.secret';

export interface VerifiableKey extends HashedSecret, KeyRights {
  id: string;
  orgId: string;
  mode: Mode;
  isUsable: boolean;
  /** The addresses from which the key can be used. An empty list allows every address. */
  allowedIps: string[];
}

/**
 * Verifies in one round trip, by the unique index of the prefix and the primary keys of the organisations. For an
 * unknown prefix it reads the permissions of some organisation, so that the answer takes as long as for a known one.
 */
export const verifySql = `
SELECT k.id, k.org_id AS "orgId", k.mode, k.scopes, k.secret_hash AS "secretHash", k.pepper_version AS "pepperVersion",
       k.allowed_ips AS "allowedIps", k.revoked_at IS NULL
       AND coalesce(least(k.valid_until, k.expires_at) > now(), true) AS "isUsable",
       (SELECT jsonb_agg(a.permissions) FROM orgs a WHERE a.id = ANY (o.path)) AS "allowedByEach"
FROM (SELECT $1::text AS prefix) asked
LEFT JOIN api_keys k ON k.prefix = asked.prefix
LEFT JOIN orgs o ON o.id = coalesce(k.org_id, (SELECT id FROM orgs LIMIT 1))`;

export async function findVerifiableKey(sql: Sql, prefix: string): Promise<VerifiableKey | null> {
  const [row] = await sql.query<VerifiableKey | { id: null }>(verifySql, [prefix]);
  return row === undefined || row.id === null ? null : row;
}

/** A use of a key, with its new hash if its pepper was not the current one. */
export interface KeyUse {
  at: Date;
  newHash: HashedSecret | null;
}

/**
 * Records the last use of keys and their new hashes. A use is skipped if another one of the same minute is on record. A
 * key that another transaction has locked is skipped too, because its next use is recorded instead. One statement
 * writes both columns, so a key that was used after a change of the pepper has a new hash.
 */
export async function noteUses(sql: Sql, uses: ReadonlyMap<string, KeyUse>): Promise<void> {
  const all = [...uses.values()];
  await sql.query(
    `WITH due AS (
       SELECT k.id, u.used_at, decode(u.hash, 'hex') AS hash, u.pepper FROM api_keys k
       JOIN unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::int[]) AS u(id, used_at, hash, pepper) ON u.id = k.id
       WHERE k.last_used_at IS NULL OR k.last_used_at <= u.used_at - interval '1 minute' OR u.hash IS NOT NULL
       ORDER BY k.id FOR UPDATE OF k SKIP LOCKED
     )
     UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, due.used_at),
       secret_hash = coalesce(due.hash, k.secret_hash),
       pepper_version = coalesce(due.pepper, k.pepper_version)
     FROM due WHERE k.id = due.id`,
    [
      [...uses.keys()],
      all.map(({ at }) => at.toISOString()),
      // Hashes are sent as text. In a list that contains a null, Prisma sends bytes in base64.
      all.map(({ newHash }) => newHash && Buffer.from(newHash.secretHash).toString('hex')),
      all.map(({ newHash }) => newHash?.pepperVersion ?? null),
    ],
  );
}
