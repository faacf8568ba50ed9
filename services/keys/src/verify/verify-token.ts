import { parseToken, type Verification, verificationRequestSchema } from '@drydock/contracts/platform/api-token';
import { tokenKeys } from '@drydock/service/access';
import type { Sql } from '@drydock/service/database';
import { internalRoute } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { effectiveScopes } from '../api-keys/api-key.rules';
import { findVerifiableKey, type KeyUse, noteUses } from '../api-keys/api-key.store';
import type { KeysDatabase } from '../context/database.store';
import type { KeySecrets } from '../secrets/api-key.secret';

interface LastUses {
  /** Remembers a use in memory, without a query. */
  note(keyId: string, use: KeyUse): void;
  start(): void;
  /** Writes the remaining uses. */
  stop(): Promise<void>;
}

/**
 * Collects the last use of each key and writes all of them together, outside any request. A crash may lose the latest
 * uses, but no request waits for the write.
 */
export function createLastUses(sql: Sql, log: Log, everyMs = 2_000): LastUses {
  let uses = new Map<string, KeyUse>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    if (uses.size === 0) return;
    const batch = uses;
    uses = new Map();
    await noteUses(sql, batch).catch((error: unknown) =>
      log.warn({ err: error, keys: batch.size }, 'last uses could not be noted'),
    );
  };
  const turn = async (): Promise<void> => {
    writing = write();
    await writing;
    timer?.refresh();
  };
  return {
    note: (keyId, use) => void uses.set(keyId, use),
    start: () => {
      timer = setTimeout(() => void turn(), everyMs).unref();
    },
    stop: async () => {
      clearTimeout(timer);
      timer = undefined;
      await writing;
      await write();
    },
  };
}

export interface VerifyContext {
  database: KeysDatabase;
  secrets: KeySecrets;
  lastUses: LastUses;
}

const refused: Verification = { valid: false };

/**
 * Verifies a token and resolves with its present rights. Every refusal has the same answer, and takes the same time
 * unless the token is malformed.
 */
export async function verifyToken(
  { database, secrets, lastUses }: VerifyContext,
  token: string,
  now: Date,
): Promise<Verification> {
  const parsed = parseToken(token);
  if (parsed === null) return refused;
  const key = await findVerifiableKey(database.sql(), parsed.prefix);
  // The comparison comes before any decision, so that an unknown prefix takes as long as a wrong secret.
  const isSecret = secrets.matches(parsed.secret, key);
  if (key === null || !isSecret || !key.isUsable || key.mode !== parsed.mode) return refused;
  lastUses.note(key.id, { at: now, newHash: secrets.renew(parsed.secret, key) });
  const limits = key.allowedIps.length === 0 ? {} : { allowed_ips: key.allowedIps };
  return { valid: true, key_id: key.id, org_id: key.orgId, mode: key.mode, scopes: effectiveScopes(key), ...limits };
}

export const verifyRoute = (context: VerifyContext, tokenSecret: string) =>
  internalRoute({
    method: 'POST',
    path: '/internal/verify',
    issuers: { gateway: tokenKeys(tokenSecret) },
    body: verificationRequestSchema,
    handle: async ({ body, now }) => ({ status: 200, body: await verifyToken(context, body.token, now) }),
  });
