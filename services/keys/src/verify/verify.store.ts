import type { Mode } from '@drydock/contracts/values';
import type { Sql } from '@drydock/database/sql';
import type { HashedSecret } from '../api-keys/api-key.secret';

export interface VerifiableKey extends HashedSecret {
  id: string;
  orgId: string;
  mode: Mode;
  scopes: string[];
  isUsable: boolean;
  /** What each organisation from the root to the key's own is allowed. */
  allowedByEach: string[][];
}

interface Row {
  id: string;
  org_id: string;
  mode: Mode;
  scopes: string[];
  secret_hash: Uint8Array<ArrayBuffer>;
  pepper_version: number;
  is_usable: boolean;
  allowed_by_each: string[][];
}

/** One round trip, by two unique indexes and the primary keys of the organisations above. */
const verifySql = `
SELECT k.id::text, k.org_id::text, k.mode::text, k.scopes, k.secret_hash, k.pepper_version,
       k.revoked_at IS NULL AND (k.valid_until IS NULL OR k.valid_until > now()) AS is_usable,
       (SELECT jsonb_agg(to_jsonb(a.permissions)) FROM orgs a WHERE a.id = ANY (o.path)) AS allowed_by_each
FROM api_keys k JOIN orgs o ON o.id = k.org_id
WHERE k.prefix = $1`;

export async function findVerifiableKey(sql: Sql, prefix: string): Promise<VerifiableKey | null> {
  const [row] = await sql.query<Row>(verifySql, [prefix]);
  if (row === undefined) return null;
  return {
    id: row.id,
    orgId: row.org_id,
    mode: row.mode,
    scopes: row.scopes,
    secretHash: row.secret_hash,
    pepperVersion: row.pepper_version,
    isUsable: row.is_usable,
    allowedByEach: row.allowed_by_each,
  };
}

/** Notes the last use of keys, unless the minute before is noted already. Returns nothing: nobody waits for it. */
export async function noteUses(sql: Sql, uses: ReadonlyMap<string, Date>): Promise<void> {
  await sql.query(
    `UPDATE api_keys k SET last_used_at = u.used_at
     FROM unnest($1::uuid[], $2::timestamptz[]) AS u(id, used_at)
     WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at <= u.used_at - interval '1 minute')`,
    [[...uses.keys()], [...uses.values()].map((at) => at.toISOString())],
  );
}
