import type { Mode } from '@drydock/contracts/values';
import type { Tx } from '../database.store';
import type { Prisma } from '../generated/prisma/client';
import type { HashedSecret } from './api-key.secret';
import type { ApiKeyRecord } from './api-key.types';

/** Whose keys a caller may manage: those of its organisation and below, in the modes that it sees. */
export interface KeyScope {
  orgId: string;
  modes: readonly Mode[];
}

export type NewApiKey = Omit<ApiKeyRecord, 'lastUsedAt' | 'validUntil' | 'revokedAt'> & HashedSecret & { createdBy: string | null };

const shown = {
  id: true,
  orgId: true,
  name: true,
  prefix: true,
  scopes: true,
  mode: true,
  createdAt: true,
  lastUsedAt: true,
  validUntil: true,
  revokedAt: true,
} as const;

/** Neither revoked nor, after a rotation, past its grace time. */
const usable = (now: Date): Prisma.ApiKeyWhereInput => ({ revokedAt: null, OR: [{ validUntil: null }, { validUntil: { gt: now } }] });

const within = ({ orgId, modes }: KeyScope): Prisma.ApiKeyWhereInput => ({ mode: { in: [...modes] }, org: { path: { has: orgId } } });

export const insertApiKey = (tx: Tx, key: NewApiKey): Promise<ApiKeyRecord> => tx.apiKey.create({ data: key, select: shown });

/** The key, or null: one out of reach, revoked or expired is not there. */
export const findApiKey = (tx: Tx, scope: KeyScope, keyId: string, now: Date): Promise<ApiKeyRecord | null> =>
  tx.apiKey.findFirst({ where: { id: keyId, ...within(scope), ...usable(now) }, select: shown });

/** Newest first, from behind the key `after`; of one organisation when `onlyOrgId` is given. */
export const listApiKeys = (
  tx: Tx,
  scope: KeyScope,
  page: { onlyOrgId: string | undefined; after: string | null; take: number; now: Date },
): Promise<ApiKeyRecord[]> =>
  tx.apiKey.findMany({
    where: {
      ...within(scope),
      ...usable(page.now),
      ...(page.onlyOrgId === undefined ? {} : { orgId: page.onlyOrgId }),
      ...(page.after === null ? {} : { id: { lt: page.after } }),
    },
    orderBy: { id: 'desc' },
    take: page.take,
    select: shown,
  });

/** Resolves with its organisation, or null when there was no such key to revoke. */
export async function revokeApiKey(tx: Tx, scope: KeyScope, keyId: string, now: Date): Promise<ApiKeyRecord | null> {
  const revoked = await tx.apiKey.updateManyAndReturn({
    where: { id: keyId, ...within(scope), ...usable(now) },
    data: { revokedAt: now },
    select: shown,
  });
  return revoked[0] ?? null;
}

/** Shortens the life of a key to `validUntil`, never prolongs it. */
export async function expireApiKey(tx: Tx, keyId: string, validUntil: Date): Promise<void> {
  await tx.apiKey.updateMany({
    where: { id: keyId, OR: [{ validUntil: null }, { validUntil: { gt: validUntil } }] },
    data: { validUntil },
  });
}
