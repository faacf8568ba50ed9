import { Prisma } from '../generated/prisma/client';

/** The columns of `api_keys k` that make an ApiKeyRecord. */
export const shownColumns = Prisma.sql`k.id, k.org_id AS "orgId", k.name, k.prefix, k.scopes, k.mode, k.created_at AS "createdAt",
  k.last_used_at AS "lastUsedAt", k.valid_until AS "validUntil", k.revoked_at AS "revokedAt", k.created_by AS "createdBy",
  k.expires_at AS "expiresAt", k.allowed_ips AS "allowedIps"`;

/**
 * Not revoked, not expired and not past its grace time after a rotation, by Postgres' clock, which verification uses.
 */
export const isUsable = Prisma.sql`k.revoked_at IS NULL AND coalesce(least(k.valid_until, k.expires_at) > now(), true)`;

/** The permissions of each organisation on the path of `orgs o`, in the form of KeyRights. */
export const allowedByEach = Prisma.sql`(SELECT jsonb_agg(a.permissions) FROM orgs a WHERE a.id = ANY (o.path)) AS "allowedByEach"`;
