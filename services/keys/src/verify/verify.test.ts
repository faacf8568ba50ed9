import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import { formatToken, parseToken } from '@drydock/contracts/platform/api-token';
import { createLog } from '@drydock/service/telemetry';
import { until } from '@drydock/testing/wait';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { openDatabase } from '../context/database.store';
import { keepHouse } from '../housekeeping';
import { createLastUses } from './verify-token';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const parsed = (token: string) => parseToken(token) ?? fail();
const fail = (): never => {
  throw new Error('not a token');
};
const lastUsedOf = async (id: string): Promise<Date | null> => {
  const [row] = await api.rows<{ last_used_at: Date | null }>('SELECT last_used_at FROM api_keys WHERE id = $1', [id]);
  return row?.last_used_at ?? null;
};

test('every invalid token gets the same answer, whatever the cause', async () => {
  const [good, revoked, expired] = [
    await api.mint(root.caller),
    await api.mint(root.caller),
    await api.mint(root.caller),
  ];
  await api.rows('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [revoked.id]);
  await api.rows(`UPDATE api_keys SET valid_until = now() - interval '1 ms' WHERE id = $1`, [expired.id]);
  const parts = parsed(good.token);
  const other = parsed((await api.mint(root.caller)).token);
  const tokens = {
    revoked: revoked.token,
    expired: expired.token,
    'another secret': formatToken({ ...parts, secret: other.secret }),
    'another prefix': formatToken({ ...parts, prefix: other.prefix }),
    'an unknown prefix': formatToken({ ...parts, prefix: 'A'.repeat(12) }),
    'the other mode': formatToken({ ...parts, mode: 'sandbox' }),
    'a letter in the other case': formatToken({ ...parts, secret: swapCase(parts.secret) }),
    'a wrong checksum': `${good.token.slice(0, -1)}${good.token.endsWith('A') ? 'B' : 'A'}`,
    truncated: good.token.slice(0, -1),
    'something behind it': `${good.token}\n`,
    'a look-alike letter': good.token.replace('d', 'ԁ'),
    nothing: '',
    injection: "dd_live_' OR '1'='1_x",
  };
  for (const [what, token] of Object.entries(tokens))
    expect([what, await api.verify(token)]).toEqual([what, { valid: false }]);
  expect((await api.verify(good.token)).valid).toBe(true);
});

const swapCase = (text: string): string => {
  const at = text.search(/[A-Za-z]/);
  const letter = text.charAt(at);
  const swapped = letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase();
  return text.slice(0, at) + swapped + text.slice(at + 1);
};

test('only the gateway may ask, and only with a token that is bound to this request', async () => {
  const { token: secret, audit } = api.secrets;
  for (const signed of [
    { issuer: 'gateway', secret: audit },
    { issuer: 'hosting', secret: audit },
    { issuer: 'hosting', secret },
  ]) {
    const answer = await api.internal('/internal/verify', { token: root.token }, signed);
    expect([answer.status, answer.text.includes('"valid"')]).toEqual([401, false]);
  }
});

test('a new hash is written with its use, even within a minute of another use, and beside other uses', async () => {
  const used = await api.mint(root.caller);
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  const uses = createLastUses(database.sql(), createLog({ service: 'test', level: 'silent' }));
  const at = new Date();
  uses.note(used.id, { at, newHash: null });
  await uses.stop();
  uses.note(root.id, { at, newHash: null });
  uses.note(used.id, { at, newHash: { secretHash: new Uint8Array(32).fill(7), pepperVersion: 3 } });
  await uses.stop();
  const [row] = await api.rows('SELECT secret_hash, pepper_version, last_used_at FROM api_keys WHERE id = $1', [
    used.id,
  ]);
  expect(row).toEqual({ secret_hash: Buffer.alloc(32, 7), pepper_version: 3, last_used_at: at });
  await database.close();
});

test('the last use is written soon, at most once a minute, and never for a refused call', async () => {
  const used = await api.mint(root.caller);
  const refused = (await api.call(root.caller, 'POST', '/v1/api-keys', { body: { name: 'never used' } }))
    .json as MintedApiKey;
  await api.verify(formatToken({ ...parsed(refused.token), secret: parsed(used.token).secret }));
  const first = await until(() => lastUsedOf(used.id));
  await api.verify(used.token);
  await api.stop();
  expect(await lastUsedOf(used.id)).toEqual(first);
  expect(await lastUsedOf(refused.id)).toBeNull();
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  const uses = createLastUses(database.sql(), createLog({ service: 'test', level: 'silent' }));
  uses.note(used.id, { at: new Date(first.getTime() + 59_000), newHash: null });
  await uses.stop();
  expect(await lastUsedOf(used.id)).toEqual(first);
  uses.note(used.id, { at: new Date(first.getTime() + 61_000), newHash: null });
  await uses.stop();
  expect(await lastUsedOf(used.id)).toEqual(new Date(first.getTime() + 61_000));
  await database.close();
});

test('housekeeping unlists keys past their grace time and forgets answers that are older than a day', async () => {
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  await api.rows(`UPDATE api_keys SET valid_until = now() - interval '1 second' WHERE id = $1`, [root.id]);
  await api.rows(
    `INSERT INTO idempotency_records (id, fingerprint, caller_key_id, target, claim, lease_expires_at, created_at)
     SELECT decode(md5(n::text), 'hex'), '', '', '', gen_random_uuid(), now(), now() - interval '25 hours' FROM generate_series(1, 1500) n`,
  );
  await keepHouse(database);
  expect(await api.rows('SELECT FROM idempotency_records')).toEqual([]);
  expect(await api.rows('SELECT FROM api_key_listings WHERE key_id = $1', [root.id])).toEqual([]);
  expect(await api.rows('SELECT revoked_at = valid_until AS ended FROM api_keys WHERE id = $1', [root.id])).toEqual([
    { ended: true },
  ]);
  await database.close();
});
