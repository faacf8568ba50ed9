import { formatToken } from '@drydock/contracts/api-token';
import { permissions } from '@drydock/contracts/permissions';
import { uuidv7 } from 'uuidv7';
import type { KeySecrets } from './api-keys/api-key.secret';
import { insertApiKey } from './api-keys/api-key.store';
import type { KeysDatabase, Tx } from './database.store';
import { findRoot, insertOrg, lockRoots } from './orgs/org.store';

export interface Bootstrapped {
  org_id: string;
  key_id: string;
  /** Shown here and nowhere else. */
  token: string;
}

export interface BootstrapRequest {
  name: string;
  /** Mint another first key for an organisation that is there already: the way back for whoever lost every key. */
  newKey: boolean;
}

/** A root organisation with every permission and its first key. Null when it is there already and no new key was asked for: nothing changes. */
export const bootstrapOrg = (database: KeysDatabase, secrets: KeySecrets, request: BootstrapRequest): Promise<Bootstrapped | null> =>
  database.transaction(async (tx) => {
    await lockRoots(tx);
    const existing = await findRoot(tx, request.name);
    if (existing !== null && !request.newKey) return null;
    const orgId = existing?.id ?? (await insertRoot(tx, request.name));
    const id = uuidv7();
    const prefix = secrets.newPrefix();
    const secret = secrets.newSecret(null);
    await insertApiKey(tx, {
      id,
      orgId,
      name: 'bootstrap',
      prefix,
      scopes: [...permissions],
      mode: 'live',
      createdBy: null,
      createdAt: new Date(),
      ...secrets.hash(secret),
    });
    return { org_id: orgId, key_id: id, token: formatToken({ mode: 'live', prefix, secret }) };
  });

async function insertRoot(tx: Tx, name: string): Promise<string> {
  const id = uuidv7();
  await insertOrg(tx, { id, parentId: null, path: [id], name, permissions: [...permissions], createdAt: new Date() });
  return id;
}
