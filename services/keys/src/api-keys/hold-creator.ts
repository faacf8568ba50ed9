import type { Permission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import { authorise } from '@drydock/service/access/authorise';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Tx } from '../database.store';
import { effectiveScopes } from './api-key.rules';
import { holdRights } from './api-key.store';
import type { KeyLimits } from './api-key.types';

/**
 * The rights and limits of the calling key, read and locked in the transaction that mints with it. The gateway's answer
 * may be a second old, but a minted key lives on: a key that was just revoked could get around its revocation. Throws
 * 401 if the key is gone, 403 if it may not mint any more.
 */
export async function holdCreator(tx: Tx, caller: Caller): Promise<KeyLimits & { held: Permission[] }> {
  const rights = await holdRights(tx, caller.keyId);
  if (rights === null) throw problem('unauthenticated', { internal: 'the calling key is revoked or unknown' });
  const held = effectiveScopes(rights).filter((scope) => caller.scopes.includes(scope));
  authorise(['apikeys.manage'], { ...caller, scopes: held });
  return { held, expiresAt: rights.expiresAt, allowedIps: rights.allowedIps };
}
