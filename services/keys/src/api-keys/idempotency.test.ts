import { randomUUID } from 'node:crypto';
import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import { refusalOf } from '@drydock/service/testing/problem';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const post = (
  idempotencyKey: string,
  body: object = { name: 'once' },
  { caller = root.caller, path = '/v1/api-keys' } = {},
) => api.call(caller, 'POST', path, { body, idempotencyKey });
const tokenOf = ({ json }: { json: unknown }): string => (json as MintedApiKey).token;
const keysNamed = async (name: string): Promise<number> =>
  (await api.rows('SELECT id FROM api_keys WHERE name = $1', [name])).length;

/** Returns every row of every table as text, as a thief of the database could read it. */
async function dump(): Promise<string> {
  const tables = await api.rows<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  const texts = await Promise.all(
    tables.map(({ name }) => api.rows<{ row: string }>(`SELECT t::text AS row FROM ${name} t`)),
  );
  return texts.flatMap((rows) => rows.map(({ row }) => row)).join('\n');
}

test('a repeat answers the same token and mints nothing; the database has no token or Idempotency-Key', async () => {
  const key = `retry-${randomUUID()}`;
  const first = await post(key, { name: 'replayed', scopes: ['sites.view'] });
  const again = await post(key, { scopes: ['sites.view'], name: 'replayed' });
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.text).toBe(first.text);
  expect(again.headers['location']).toBe(first.headers['location']);
  expect([first.headers['idempotent-replayed'], again.headers['idempotent-replayed']]).toEqual([undefined, 'true']);
  expect(await keysNamed('replayed')).toBe(1);
  expect(await api.verify(tokenOf(again))).toMatchObject({ valid: true });

  const stolen = await dump();
  const [, , prefix = '', secret = ''] = tokenOf(first).split('_');
  expect(stolen).toContain(prefix);
  for (const text of [secret, secret.slice(0, -6), secret.slice(0, 16), key]) {
    expect(stolen).not.toContain(text);
    expect(stolen).not.toContain(Buffer.from(text).toString('hex'));
    expect(stolen).not.toContain(Buffer.from(text).toString('base64').slice(0, 20));
  }
});

test('the derived secret depends on the caller, the Idempotency-Key and the record', async () => {
  const [key, other] = [randomUUID(), randomUUID()];
  const colleague = await api.mint(root.caller, { scopes: ['apikeys.manage'] });
  const answers = [await post(key), await post(other), await post(key, undefined, { caller: colleague.caller })];
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
  expect(new Set(answers.map((answer) => tokenOf(answer).slice(-49))).size).toBe(3);
});

test('five requests at once with one key make one key and one answer', async () => {
  const key = randomUUID();
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(key, { name: 'five' })));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 201));
  expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
  expect(await keysNamed('five')).toBe(1);
});

test('another body is refused; another path and another organisation may use the same key anew', async () => {
  const key = randomUUID();
  const first = await post(key);
  expect(refusalOf(await post(key, { name: 'other' }))).toBe('422 idempotency_key_reused');
  const stranger = await api.bootstrap();
  const theirs = await post(key, { name: 'other' }, { caller: stranger.caller });
  expect([theirs.status, theirs.headers['idempotent-replayed']]).toEqual([201, undefined]);
  expect(theirs.text).not.toContain(tokenOf(first));
  const rotated = await post(key, {}, { path: `/v1/api-keys/${(first.json as MintedApiKey).id}/rotate` });
  expect([rotated.status, rotated.headers['idempotent-replayed']]).toEqual([201, undefined]);
});

test('a rotation replays its token too, and rotates once', async () => {
  const { id } = await api.mint(root.caller, { name: 'turning' });
  const key = randomUUID();
  const [first, again] = [
    await post(key, {}, { path: `/v1/api-keys/${id}/rotate` }),
    await post(key, {}, { path: `/v1/api-keys/${id}/rotate` }),
  ];
  expect([first.status, again.text, again.headers['idempotent-replayed']]).toEqual([201, first.text, 'true']);
  expect(await keysNamed('turning')).toBe(2);
  expect(await dump()).not.toContain(tokenOf(first).slice(-49));
});

test('a repeat gives the first answer even after its key was revoked; the token is no longer valid', async () => {
  const key = randomUUID();
  const first = await post(key, { name: 'short-lived' });
  const { id } = first.json as MintedApiKey;
  const rotation = { path: `/v1/api-keys/${id}/rotate` };
  const rotated = await post(key, { grace_seconds: 0 }, rotation);
  expect(rotated.status).toBe(201);
  const successor = `/v1/api-keys/${(rotated.json as MintedApiKey).id}`;
  expect((await api.call(root.caller, 'DELETE', successor)).status).toBe(204);
  const again = [await post(key, { name: 'short-lived' }), await post(key, { grace_seconds: 0 }, rotation)];
  expect(again.map(({ status, text }) => [status, text])).toEqual([first, rotated].map(({ text }) => [201, text]));
  for (const answer of again) {
    expect(answer.headers['idempotent-replayed']).toBe('true');
    expect(await api.verify(tokenOf(answer))).toMatchObject({ valid: false });
  }
});

test('a repeat whose token cannot be derived any more is refused; a fresh Idempotency-Key mints a key', async () => {
  const key = randomUUID();
  const first = await post(key, { name: 'before the rotation' });
  const renewed = await startKeys({ DATABASE_URL: api.postgres.url, WEBHOOK_SECRET: api.secrets.webhook });
  const postAgain = (idempotencyKey: string) =>
    renewed.call(root.caller, 'POST', '/v1/api-keys', { body: { name: 'before the rotation' }, idempotencyKey });
  const again = await postAgain(key);
  expect([refusalOf(again), again.headers['content-type']]).toEqual([
    '422 idempotency_key_reused',
    'application/problem+json',
  ]);
  expect(again.json).toMatchObject({ detail: expect.stringContaining(String(first.headers['location'])) });
  expect(await keysNamed('before the rotation')).toBe(1);
  expect((await postAgain(randomUUID())).status).toBe(201);
  await renewed.close();
});

test('a permanent refusal is replayed, and a refusal for a missing right is decided anew', async () => {
  const [wrong, early] = [randomUUID(), randomUUID()];
  const first = await post(wrong, { name: 'x', scopes: ['sites.fly'] });
  const again = await post(wrong, { name: 'x', scopes: ['sites.fly'] });
  expect([first.status, again.text, again.headers['idempotent-replayed']]).toEqual([422, first.text, 'true']);
  const { caller, id } = await api.mint(root.caller, { scopes: ['apikeys.manage'] });
  const body = { name: 'later', scopes: ['sites.view'] };
  expect(refusalOf(await post(early, body, { caller }))).toBe('403 scope_not_held');
  await api.rows('UPDATE api_keys SET scopes = $2 WHERE id = $1', [id, ['apikeys.manage', 'sites.view']]);
  const granted = await post(early, body, { caller: { ...caller, scopes: ['apikeys.manage', 'sites.view'] } });
  expect([granted.status, granted.headers['idempotent-replayed']]).toEqual([201, undefined]);
});

test('a replay checks the permission again; after a day the Idempotency-Key counts as new', async () => {
  const key = randomUUID();
  const first = await post(key, { name: 'a day' });
  const demoted = { ...root.caller, scopes: ['sites.view'] };
  expect(refusalOf(await post(key, { name: 'a day' }, { caller: demoted }))).toBe('403 permission_denied');
  await api.rows(`UPDATE idempotency_records SET created_at = created_at - interval '25 hours'`);
  const afresh = await post(key, { name: 'a day' });
  expect([afresh.status, afresh.headers['idempotent-replayed'], tokenOf(afresh) === tokenOf(first)]).toEqual([
    201,
    undefined,
    false,
  ]);
});

test.each([
  ['', 422],
  ['k'.repeat(255), 201],
  ['"'.repeat(255), 201],
  ['k'.repeat(256), 422],
  ['two words', 422],
])('Idempotency-Key %# is answered %s', async (key, status) => {
  const answers = [await post(key), await post(key)];
  expect(answers.map((answer) => answer.status)).toEqual([status, status]);
  if (status === 201) expect(answers[1]?.text).toBe(answers[0]?.text);
  else expect(answers.map(refusalOf)).toEqual(Array.from({ length: 2 }, () => '422 idempotency_key_invalid'));
});
