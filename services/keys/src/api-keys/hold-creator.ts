import type { Permission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import { authorise } from '@drydock/service/access/authorise';
import type { Caller } from '@drydock/service/access/internal-token';
import type { Tx } from '../database.store';
import { effectiveScopes } from './api-key.rules';
import { holdRights } from './api-key.store';
import type { KeyLimits } from './api-key.types';

/**
 * Reads and locks the rights and limits of the calling key, in the transaction that mints the new key. The gateway may
 * have verified the calling key up to a second ago. Without this second check, a key that was revoked in that second
 * could mint a new one, which would outlive the revocation. Throws 401 if the key is gone, and 403 if it may not mint
 * any more.
 */
export async function holdCreator(tx: Tx, caller: Caller): Promise<KeyLimits & { held: Permission[] }> {
  const rights = await holdRights(tx, caller.keyId);
  if (rights === null) throw problem('unauthenticated', { internal: 'the calling key is revoked or unknown' });
  const held = effectiveScopes(rights).filter((scope) => caller.scopes.includes(scope));
  authorise(['apikeys.manage'], { ...caller, scopes: held });
  return { held, expiresAt: rights.expiresAt, allowedIps: rights.allowedIps };
}
