import type { Mode } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import type { HashedSecret } from '../secrets/api-key.secret';
import type { ApiKeyRecord, KeyLimits, KeyRights, KeyScope } from './api-key.rules';

/** The columns of `api_keys k` that make an ApiKeyRecord. */
const shownColumns = Prisma.sql`k.id, k.org_id AS "orgId", k.name, k.prefix, k.scopes, k.mode,
  k.created_at AS "createdAt",
  k.last_used_at AS "lastUsedAt", k.valid_until AS "validUntil", k.revoked_at AS "revokedAt",
    k.created_by AS "createdBy",
  k.expires_at AS "expiresAt", k.allowed_ips AS "allowedIps"`;

/**
 * True if the key is not revoked, not expired and not past its grace time after a rotation. The verification of a key
 * also reads the time from Postgres, so that the two checks agree.
 */
const isUsable = Prisma.sql`k.revoked_at IS NULL AND coalesce(least(k.valid_until, k.expires_at) > now(), true)`;

/** The permissions of the organisation `o` and of each organisation above it, for `KeyRights`. */
const allowedByEach = Prisma.sql`(SELECT jsonb_agg(a.permissions) FROM orgs a
  WHERE a.id = ANY (o.path)) AS "allowedByEach"`;

interface ListPage {
  /** The last key of the previous page; null for the first page. */
  after: string | null;
  take: number;
}

const newest = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const inSight = (table: Prisma.Sql, { mode }: KeyScope): Prisma.Sql =>
  mode === 'sandbox' ? Prisma.sql`AND ${table}.mode = 'sandbox'` : Prisma.empty;

/**
 * Lists the keys of an organisation and of all organisations below it. The query reads one range of one index, however
 * many organisations there are. OFFSET 0 keeps the planner from a merge join, which would read half of all keys for a
 * page from the middle of the list.
 */
export const subtreeQuery = (scope: KeyScope, { after, take }: ListPage): Prisma.Sql => Prisma.sql`
  SELECT k.* FROM api_key_listings l
  CROSS JOIN LATERAL (SELECT ${shownColumns} FROM api_keys k WHERE k.id = l.key_id AND ${isUsable} OFFSET 0) k
  WHERE l.org_id = ${scope.orgId}::uuid AND l.key_id < ${after ?? newest}::uuid ${inSight(Prisma.sql`l`, scope)}
  ORDER BY l.key_id DESC LIMIT ${take}::int`;

/**
 * A single query for the keys of one organisation. An organisation without keys gives one row of nulls. An organisation
 * that the caller may not reach gives no row.
 */
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

/** Keys of this organisation alone, newest first. Null if the caller may not reach the organisation. */
export async function listOneOrg(
  tx: Reader,
  scope: KeyScope,
  orgId: string,
  page: ListPage,
): Promise<ApiKeyRecord[] | null> {
  const rows = await tx.$queryRaw<Array<ApiKeyRecord | { id: null }>>(oneOrgQuery(scope, orgId, page));
  return rows.length === 0 ? null : rows.filter((row) => row.id !== null);
}

type NewApiKey = Omit<ApiKeyRecord, 'lastUsedAt' | 'validUntil' | 'revokedAt'> & HashedSecret;

/**
 * Limits a query to keys that the caller may manage. `api_key_listings l` lists each key under its organisation and
 * under each organisation above.
 */
const isManaged = ({ orgId, mode }: KeyScope, keyId: string): Prisma.Sql =>
  Prisma.sql`l.key_id = ${keyId}::uuid
    AND l.org_id = ${orgId}::uuid ${mode === 'sandbox' ? Prisma.sql`AND l.mode = 'sandbox'` : Prisma.empty}`;

export async function insertApiKey(tx: Tx, key: NewApiKey): Promise<ApiKeyRecord> {
  const [row] = await tx.$queryRaw<ApiKeyRecord[]>`
    WITH minted AS (
      INSERT INTO api_keys (id, org_id, name, prefix, secret_hash, pepper_version, scopes, mode, created_by, created_at,
        expires_at, allowed_ips)
      VALUES (${key.id}::uuid, ${key.orgId}::uuid, ${key.name}, ${key.prefix}, ${key.secretHash},
        ${key.pepperVersion}::int,
        ${key.scopes}::text[], ${key.mode}::mode, ${key.createdBy}::uuid, ${key.createdAt}::timestamptz,
        ${key.expiresAt}::timestamptz, ${key.allowedIps}::text[])
      RETURNING *
    ), listed AS (
      INSERT INTO api_key_listings (key_id, org_id, mode)
      SELECT k.id, unnest(o.path), k.mode FROM minted k JOIN orgs o ON o.id = k.org_id
    )
    SELECT ${shownColumns} FROM minted k`;
  if (row === undefined) throw new Error('the key was not inserted');
  return row;
}

/** The key; null if the caller may not manage it, or if it is revoked or expired. */
export async function findApiKey(tx: Reader, scope: KeyScope, keyId: string): Promise<ApiKeyRecord | null> {
  const [row] = await tx.$queryRaw<ApiKeyRecord[]>`
    SELECT ${shownColumns} FROM api_key_listings l JOIN api_keys k ON k.id = l.key_id WHERE ${isManaged(scope, keyId)}
    AND ${isUsable}`;
  return row ?? null;
}

/**
 * Locks the row of the key that {@link findApiKey} would find, until the transaction ends. Nobody can revoke the key
 * while the caller replaces or changes it.
 */
export async function lockApiKey(tx: Tx, scope: KeyScope, keyId: string): Promise<(ApiKeyRecord & KeyRights) | null> {
  const [row] = await tx.$queryRaw<Array<ApiKeyRecord & KeyRights>>`
    SELECT ${shownColumns}, ${allowedByEach}
    FROM api_key_listings l JOIN api_keys k ON k.id = l.key_id JOIN orgs o ON o.id = k.org_id
    WHERE ${isManaged(scope, keyId)} AND ${isUsable} FOR UPDATE OF k`;
  return row ?? null;
}

/** Stores a change of a key. The caller has locked the key's row. */
export async function changeApiKey(
  tx: Tx,
  keyId: string,
  change: Pick<ApiKeyRecord, 'name' | 'scopes'> & KeyLimits,
): Promise<void> {
  await tx.apiKey.update({ where: { id: keyId }, data: change });
}

/**
 * The rights of a calling key, locked until the transaction ends, so that the key cannot be revoked while it mints a
 * new key. Null if the key is revoked or expired.
 */
export async function holdRights(tx: Tx, keyId: string): Promise<(KeyRights & KeyLimits) | null> {
  const [row] = await tx.$queryRaw<Array<KeyRights & KeyLimits>>`
    SELECT k.scopes, k.expires_at AS "expiresAt", k.allowed_ips AS "allowedIps", ${allowedByEach} FROM api_keys k
    JOIN orgs o ON o.id = k.org_id
    WHERE k.id = ${keyId}::uuid AND ${isUsable} FOR SHARE OF k`;
  return row ?? null;
}

/** Resolves with the key's id and organisation, or with null if there was no such key to revoke. */
export async function revokeApiKey(
  tx: Tx,
  scope: KeyScope,
  keyId: string,
): Promise<{ id: string; orgId: string } | null> {
  const [row] = await tx.$queryRaw<Array<{ id: string; orgId: string }>>`
    WITH revoked AS (
      UPDATE api_keys k SET revoked_at = now() FROM api_key_listings l
      WHERE k.id = l.key_id AND ${isManaged(scope, keyId)} AND ${isUsable} RETURNING k.id, k.org_id
    ), unlisted AS (
      DELETE FROM api_key_listings WHERE key_id IN (SELECT id FROM revoked)
    )
    SELECT id, org_id AS "orgId" FROM revoked`;
  return row ?? null;
}

/** Lets the key live for at most `graceSeconds` more; never prolongs its life. */
export async function expireApiKey(tx: Tx, keyId: string, graceSeconds: number): Promise<void> {
  await tx.$executeRaw`
    UPDATE api_keys SET valid_until = least(coalesce(valid_until, 'infinity'),
      now() + make_interval(secs => ${graceSeconds}::float8))
    WHERE id = ${keyId}::uuid`;
}

/**
 * Marks keys as revoked that have expired or whose grace time is over, and removes them from the lists. Resolves with
 * the number of removed listings.
 */
export async function retireExpiredKeys(tx: Tx): Promise<number> {
  return tx.$executeRaw`
    WITH retired AS (
      UPDATE api_keys SET revoked_at = least(valid_until, expires_at) WHERE revoked_at IS NULL
      AND least(valid_until, expires_at) <= now() RETURNING id
    )
    DELETE FROM api_key_listings WHERE key_id IN (SELECT id FROM retired)`;
}

export interface VerifiableKey extends HashedSecret, KeyRights {
  id: string;
  orgId: string;
  mode: Mode;
  isUsable: boolean;
  /** The addresses from which the key can be used. An empty list allows every address. */
  allowedIps: string[];
}

/**
 * Reads a key and its rights in one round trip. For an unknown prefix, the query reads the permissions of an arbitrary
 * organisation, so that the answer takes as long as for a known prefix.
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

/** A use of a key. `newHash` is set if the stored hash was made with an old pepper. */
export interface KeyUse {
  at: Date;
  newHash: HashedSecret | null;
}

/**
 * Records the last use of keys and their new hashes. Skips a use without a new hash if a use less than a minute earlier
 * is on record. Skips a locked key rather than wait for it. The use and the new hash are written together. So a key
 * whose last use is later than the introduction of a pepper has a hash with that pepper.
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
      // Hashes are sent as hex, because Prisma sends the bytes of a list that contains a null as base64.
      all.map(({ newHash }) => newHash && Buffer.from(newHash.secretHash).toString('hex')),
      all.map(({ newHash }) => newHash?.pepperVersion ?? null),
    ],
  );
}
