import jwt from 'jsonwebtoken';
import {
  type BoundRequest,
  type Caller,
  signInternalToken,
  signRequestToken,
  tokenKey,
  tokenLifetimeSeconds,
} from './internal-token';

const secret = 'ab'.repeat(32);
const key = tokenKey(secret);
const nowMs = Date.now();
const caller: Caller = { keyId: 'key-1', orgId: 'org-1', mode: 'sandbox', scopes: ['sites.view', 'sites.manage'] };
const bound: BoundRequest = {
  requestId: 'request-1',
  method: 'POST',
  path: '/v1/sites',
  body: Buffer.from('{"a":1}'),
  idempotencyKey: 'one',
};
const awkward = `/v1/sites?name="ünï\\"&emoji=${'\u{1f6a2}'}\u2028${'\ud800'}`;

const requestToken = (changed: Partial<BoundRequest> = {}): string =>
  signRequestToken(key, 'hosting', caller, { ...bound, ...changed }, nowMs);
const internalToken = (changed: Partial<BoundRequest> = {}): string =>
  signInternalToken(key, { issuer: 'gateway', audience: 'keys' }, { ...bound, ...changed }, nowMs);

/** The token that jsonwebtoken makes from the same claims. The token under test must be equal to it. */
function signedByLibrary(token: string, typ: string): string {
  const claims = jwt.verify(token, key, { algorithms: ['HS256'] });
  if (typeof claims === 'string') throw new Error('claims are an object');
  return jwt.sign(claims, key, { algorithm: 'HS256', header: { alg: 'HS256', typ } });
}

describe('tokens signed by hand', () => {
  const cases: Array<[string, Partial<BoundRequest>]> = [
    ['a body and an idempotency key', {}],
    ['neither', { body: undefined, idempotencyKey: undefined }],
    ['a path that JSON must escape', { path: awkward }],
    ['a long path', { path: `/v1/sites?cursor=${'x'.repeat(4_000)}` }],
  ];

  test.each(cases)('are byte for byte those of jsonwebtoken: %s', (_what, changed) => {
    const [request, internal] = [requestToken(changed), internalToken(changed)];
    expect(request).toBe(signedByLibrary(request, 'drydock-request+jwt'));
    expect(internal).toBe(signedByLibrary(internal, 'drydock-internal+jwt'));
  });

  test('carry the caller and live thirty seconds', () => {
    const claims = jwt.verify(requestToken(), key, { algorithms: ['HS256'], issuer: 'gateway', audience: 'hosting' });
    const iat = Math.floor(nowMs / 1_000);
    expect(claims).toMatchObject({
      key_id: 'key-1',
      org_id: 'org-1',
      mode: 'sandbox',
      scopes: caller.scopes,
      iat,
      exp: iat + tokenLifetimeSeconds,
    });
  });

  test('are refused by jsonwebtoken with another secret or a changed claim', () => {
    expect(() => jwt.verify(requestToken(), tokenKey('cd'.repeat(32)), { algorithms: ['HS256'] })).toThrow(
      'invalid signature',
    );
    const [head = '', , signature = ''] = requestToken().split('.');
    const changed = requestToken({ path: '/v1/others' }).split('.')[1] ?? '';
    expect(() => jwt.verify(`${head}.${changed}.${signature}`, key, { algorithms: ['HS256'] })).toThrow(
      'invalid signature',
    );
  });
});
