import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import { formatToken } from '@drydock/contracts/platform/api-token';
import type { Caller } from '@drydock/service/access/internal-token';
import { uuidv7 } from 'uuidv7';
import type { Tx } from '../database.store';
import type { KeySecrets } from './api-key.secret';
import { insertApiKey } from './api-key.store';
import type { ApiKeyRecord, KeyLimits } from './api-key.types';
import { viewMinted } from './api-key.view';

/** The part of a request that a new key depends on. */
export interface MintingRequest {
  caller: Caller;
  idempotencyKey: string | undefined;
  now: Date;
}

/** Inserts a key with these rights and makes its answer, the only place where its token appears. */
export async function mintKey(
  tx: Tx,
  secrets: KeySecrets,
  { caller, idempotencyKey, now }: MintingRequest,
  key: Pick<ApiKeyRecord, 'orgId' | 'name' | 'scopes' | 'mode'> & KeyLimits,
): Promise<{ status: 201; headers: { location: string }; body: MintedApiKey }> {
  const id = uuidv7();
  const prefix = secrets.newPrefix();
  const origin =
    idempotencyKey === undefined
      ? null
      : { callerKeyId: caller.keyId, rawIdempotencyKey: idempotencyKey, recordId: id };
  const secret = secrets.newSecret(origin);
  const record = await insertApiKey(tx, {
    ...key,
    id,
    prefix,
    createdBy: caller.keyId,
    createdAt: now,
    ...secrets.hash(secret),
  });
  const body = viewMinted(record, formatToken({ mode: key.mode, prefix, secret }));
  return { status: 201, headers: { location: `/v1/api-keys/${id}` }, body };
}
