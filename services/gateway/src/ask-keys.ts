import { randomUUID } from 'node:crypto';
import { verificationSchema } from '@drydock/contracts/hosting/verification';
import { problem } from '@drydock/contracts/platform/problem';
import { scaled } from '@drydock/process/time-out-scale';
import { signInternalToken } from '@drydock/service/access/internal-token';
import { networksOf } from './address';
import type { Verified } from './authenticate';
import { requestOf } from './replicas';
import type { Upstream } from './upstream';

const verifyPath = '/internal/verify';
/** A verification is one indexed read. If it takes longer than this, the caller should come back later. */
const verifyMs = 2_000;

/** Asks keys whether a token is good now. Rejects with 503 `dependency_unavailable` if keys cannot be asked. */
export const createAskKeys =
  (keys: Upstream) =>
  (token: string, traceparent?: string): Promise<Verified> =>
    keys.guard(async () => {
      const body = Buffer.from(JSON.stringify({ token }));
      const signal = AbortSignal.timeout(scaled(verifyMs));
      const { status, text } = await keys.replicas.run((replica) => {
        const bound = { requestId: randomUUID(), method: 'POST', path: verifyPath, body };
        const internalToken = signInternalToken(keys.key, { issuer: 'gateway', audience: 'keys' }, bound);
        const headers = {
          authorization: `Bearer ${internalToken}`,
          'content-type': 'application/json',
          ...(traceparent === undefined ? {} : { traceparent }),
        };
        return requestOf(replica, { method: 'POST', path: verifyPath, headers, body, signal });
      }, true);
      if (status !== 200) {
        throw problem('dependency_unavailable', {
          extra: { dependency: 'keys' },
          retryAfterSeconds: 5,
          internal: `keys answered ${status} to a verification`,
        });
      }
      const verification = verificationSchema.parse(JSON.parse(text));
      if (!verification.valid) return null;
      const { key_id: keyId, org_id: orgId, mode, scopes, allowed_ips: from } = verification;
      return { caller: { keyId, orgId, mode, scopes }, from: from === undefined ? undefined : networksOf(from) };
    });
