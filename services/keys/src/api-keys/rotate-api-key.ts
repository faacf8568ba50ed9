import type { rotateApiKey as endpoint } from '@drydock/contracts/api-keys';
import { formatToken } from '@drydock/contracts/api-token';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, visibleModes } from '../context';
import type { Tx } from '../database.store';
import { refuseRotation } from './api-key.rules';
import { expireApiKey, findApiKey, insertApiKey } from './api-key.store';
import { viewMinted } from './api-key.view';
import { replayToken } from './replay-token';

export const rotateApiKey = ({ secrets }: HandlerContext) =>
  ({
    act: async (tx, { params, caller, body, idempotencyKey, now }) => {
      const old = await findApiKey(tx, { orgId: caller.orgId, modes: visibleModes(caller) }, params.keyId, now);
      if (old === null) throw problem('api_key_not_found');
      const refusal = refuseRotation(old.scopes, caller.scopes);
      if (refusal !== null) throw refusal;
      const id = uuidv7();
      const prefix = secrets.newPrefix();
      const origin = idempotencyKey === undefined ? null : { callerKeyId: caller.keyId, rawIdempotencyKey: idempotencyKey, recordId: id };
      const secret = secrets.newSecret(origin);
      const { orgId, name, scopes, mode } = old;
      const key = await insertApiKey(tx, {
        id,
        orgId,
        name,
        prefix,
        scopes,
        mode,
        createdBy: caller.keyId,
        createdAt: now,
        ...secrets.hash(secret),
      });
      await expireApiKey(tx, old.id, new Date(now.getTime() + body.grace_seconds * 1000));
      await recordAudit(tx, caller, { orgId, action: 'api_key.rotate', target: `/v1/api-keys/${old.id}`, at: now });
      const token = formatToken({ mode, prefix, secret });
      return { status: 201, headers: { location: `/v1/api-keys/${id}` }, body: viewMinted(key, token) };
    },
    replaySecret: replayToken(secrets),
  }) satisfies ActHandlers<typeof endpoint, Tx, void>;
