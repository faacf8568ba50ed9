import type { Reader, Tx } from '../database.store';
import { Prisma } from '../generated/prisma/client';
import { allowedByEach, isUsable, shownColumns } from './api-key.columns.store';
import type { HashedSecret } from './api-key.secret';
import type { ApiKeyRecord, KeyLimits, KeyRights, KeyScope } from './api-key.types';

export type NewApiKey = Omit<ApiKeyRecord, 'lastUsedAt' | 'validUntil' | 'revokedAt'> & HashedSecret;

/** Limits to the keys in the lists of the organisation and of each one above it. */
const isManaged = ({ orgId, mode }: KeyScope, keyId: string): Prisma.Sql =>
  Prisma.sql`l.key_id = ${keyId}::uuid AND l.org_id = ${orgId}::uuid ${mode === 'sandbox' ? Prisma.sql`AND l.mode = 'sandbox'` : Prisma.empty}`;

export async function insertApiKey(tx: Tx, key: NewApiKey): Promise<ApiKeyRecord> {
  const [row] = await tx.$queryRaw<ApiKeyRecord[]>`
    WITH minted AS (
      INSERT INTO api_keys (id, org_id, name, prefix, secret_hash, pepper_version, scopes, mode, created_by, created_at,
        expires_at, allowed_ips)
      VALUES (${key.id}::uuid, ${key.orgId}::uuid, ${key.name}, ${key.prefix}, ${key.secretHash}, ${key.pepperVersion}::int,
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

/** The key; null if it is out of reach, revoked or expired. */
export async function findApiKey(tx: Reader, scope: KeyScope, keyId: string): Promise<ApiKeyRecord | null> {
  const [row] = await tx.$queryRaw<ApiKeyRecord[]>`
    SELECT ${shownColumns} FROM api_key_listings l JOIN api_keys k ON k.id = l.key_id WHERE ${isManaged(scope, keyId)} AND ${isUsable}`;
  return row ?? null;
}

/** The same, with the row locked until the transaction ends, so that nobody revokes it while it is replaced. */
export async function lockApiKey(tx: Tx, scope: KeyScope, keyId: string): Promise<(ApiKeyRecord & KeyRights) | null> {
  const [row] = await tx.$queryRaw<Array<ApiKeyRecord & KeyRights>>`
    SELECT ${shownColumns}, ${allowedByEach}
    FROM api_key_listings l JOIN api_keys k ON k.id = l.key_id JOIN orgs o ON o.id = k.org_id
    WHERE ${isManaged(scope, keyId)} AND ${isUsable} FOR UPDATE OF k`;
  return row ?? null;
}

/** The key is held. */
export async function changeApiKey(
  tx: Tx,
  keyId: string,
  change: Pick<ApiKeyRecord, 'name' | 'scopes'> & KeyLimits,
): Promise<void> {
  await tx.apiKey.update({ where: { id: keyId }, data: change });
}

/**
 * The rights of a calling key, locked until the transaction ends, so that it cannot be revoked while it mints. Null if
 * it is no key any more.
 */
export async function holdRights(tx: Tx, keyId: string): Promise<(KeyRights & KeyLimits) | null> {
  const [row] = await tx.$queryRaw<Array<KeyRights & KeyLimits>>`
    SELECT k.scopes, k.expires_at AS "expiresAt", k.allowed_ips AS "allowedIps", ${allowedByEach} FROM api_keys k JOIN orgs o ON o.id = k.org_id
    WHERE k.id = ${keyId}::uuid AND ${isUsable} FOR SHARE OF k`;
  return row ?? null;
}

/** Resolves with the key's organisation, or with null if there was no such key to revoke. */
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
    UPDATE api_keys SET valid_until = least(coalesce(valid_until, 'infinity'), now() + make_interval(secs => ${graceSeconds}::float8))
    WHERE id = ${keyId}::uuid`;
}

/**
 * Turns keys that have expired, or whose grace time is over, into revoked ones, which are not listed. Resolves with
 * their number.
 */
export async function retireExpiredKeys(tx: Tx): Promise<number> {
  return tx.$executeRaw`
    WITH retired AS (
      UPDATE api_keys SET revoked_at = least(valid_until, expires_at) WHERE revoked_at IS NULL AND least(valid_until, expires_at) <= now() RETURNING id
    )
    DELETE FROM api_key_listings WHERE key_id IN (SELECT id FROM retired)`;
}
