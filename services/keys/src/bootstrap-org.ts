import { formatToken } from '@drydock/contracts/platform/api-token';
import { permissions } from '@drydock/contracts/platform/permissions';
import { uuidv7 } from 'uuidv7';
import { insertApiKey } from './api-keys/api-key.store';
import { recordAudit } from './audit/audit.store';
import type { KeysDatabase, Tx } from './context/database.store';
import { findRoot, insertOrg } from './orgs/org.store';
import type { KeySecrets } from './secrets/api-key.secret';

export interface Bootstrapped {
  org_id: string;
  key_id: string;
  /** Only this result has the token. Nobody can read it again. */
  token: string;
}

export interface BootstrapRequest {
  name: string;
  /** Whether an existing organisation gets another key with every permission, in case it has lost all its keys. */
  newKey: boolean;
  now: Date;
}

/** The actor in the audit log. It has no key, because the bootstrap is not a call of the API. */
const operator = { keyId: null, mode: 'live' } as const;

/**
 * Makes a root organisation with every permission, and its first key. If the organisation exists, `newKey` gives it
 * another key. Without `newKey` nothing is changed, and the result is null.
 */
export const bootstrapOrg = (
  database: KeysDatabase,
  secrets: KeySecrets,
  request: BootstrapRequest,
): Promise<Bootstrapped | null> =>
  database.transaction(async (tx) => {
    const { name, newKey, now } = request;
    const made = await insertRoot(tx, name, now);
    if (made === null && !newKey) return null;
    const orgId = made ?? (await findRoot(tx, name))?.id;
    if (orgId === undefined) throw new Error(`the organisation ${name} is neither new nor there`);
    const id = uuidv7();
    const prefix = secrets.newPrefix();
    const secret = secrets.newSecret(null);
    const key = {
      id,
      orgId,
      name: 'bootstrap',
      prefix,
      scopes: [...permissions],
      mode: 'live' as const,
      createdBy: null,
      expiresAt: null,
      allowedIps: [],
      createdAt: now,
    };
    await insertApiKey(tx, { ...key, ...secrets.hash(secret) });
    await recordAudit(tx, operator, { orgId, action: 'api_key.create', target: `/v1/api-keys/${id}`, at: now });
    return { org_id: orgId, key_id: id, token: formatToken({ mode: 'live', prefix, secret }) };
  });

/**
 * Inserts the root organisation. Null if a root organisation of that name exists. The unique index makes the second of
 * two simultaneous commands wait for the first.
 */
async function insertRoot(tx: Tx, name: string, now: Date): Promise<string | null> {
  const id = uuidv7();
  const org = await insertOrg(tx, {
    id,
    parentId: null,
    path: [id],
    name,
    permissions: [...permissions],
    createdAt: now,
  });
  if (org === null) return null;
  await recordAudit(tx, operator, { orgId: id, action: 'org.create', target: `/v1/orgs/${id}`, at: now });
  return id;
}
