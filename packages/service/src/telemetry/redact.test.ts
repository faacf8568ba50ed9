import { createRedaction, secretsOf } from './redact';

const redact = createRedaction([]);
const token = `dd_live_${'A1b2C3d4E5f6'}_${'x'.repeat(49)}`;

test.each([
  ['an API key', `the key ${token} is revoked`, [token]],
  ['a bearer token', 'Authorization: Bearer abc.def-ghi_jkl', ['abc.def-ghi_jkl']],
  ['a JSON web token', 'got eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJnYXRld2F5In0.c2lnbmF0dXJl', ['eyJ', 'c2lnbmF0']],
  ['a URL’s password', 'postgresql://owner:p%40ss-word@127.0.0.1:5432/site', ['p%40ss']],
  ['a verifier', 'SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy', ['c2FsdA', 'c3RvcmVk', 'c2VydmVy']],
  ['a password in SQL', `create role "a" login password 'se''cret' inherit`, ['cret']],
  [
    'a password in a statement in a string',
    `create subscription s connection 'host=h password=''secret''' publication p`,
    ['secret'],
  ],
  ['a password in SQL in JSON', JSON.stringify({ q: `alter role a password 'secret'` }), ['secret']],
  ['a password in JSON', '{"password":"secret words","a":1}', ['secret']],
  ['a password in JSON in JSON', JSON.stringify({ body: '{"password":"secret"}' }), ['secret']],
  ['a connection string', 'host=h password=secret dbname=d', ['secret']],
  ['a signature of S3', 'http://s3/b/k?X-Amz-Signature=abcdef0123&X-Amz-Date=1', ['abcdef0123']],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----', ['MIIE']],
])('%s is struck out', (_name, text, secrets) => {
  const shown = redact(text);
  for (const secret of secrets) expect(shown).not.toContain(secret);
  expect(shown).toContain('[redacted]');
  if (text.startsWith('{')) expect(() => JSON.parse(shown)).not.toThrow();
});

test.each([
  'password authentication failed for user "bob"',
  'the column password_hash is null',
  'http://example.com/a:b@c',
  'SELECT md5sum FROM files',
  '{"msg":"request","route":"GET /v1/sites","request_id":"0191d2f0-7c3e-7b1a-9a52-3f6f0c1e8a44"}',
])('%s is left as it is', (text) => {
  expect(redact(text)).toBe(text);
});

test('what the process was given as a secret is struck out in whatever text it stands', () => {
  const hex = 'a1'.repeat(32);
  const secrets = secretsOf({
    SERVICE_SECRET: hex,
    PROJECT_TOKENS: 'one=abcdefgh12345678,two=ijklmnop12345678',
    CREDENTIALS_KEYS: '[{"accessKeyId":"AKIA2345678901234567","secretAccessKey":"c3VwZXItc2VjcmV0LTEyMzQ"}]',
    DATABASE_URL: 'postgresql://keys:p4ss%2Fword@127.0.0.1/keys',
    PATH: '/usr/local/bin0/abcdefghijklmnop',
    HOME: '/home/0123456789abcdef',
  });
  const strike = createRedaction(secrets);
  for (const secret of [
    hex,
    'abcdefgh12345678',
    'ijklmnop12345678',
    'c3VwZXItc2VjcmV0LTEyMzQ',
    'p4ss%2Fword',
    'p4ss/word',
  ])
    expect(strike(`before ${secret} after`)).toBe('before [redacted] after');
  expect(strike('/home/0123456789abcdef')).toBe('/home/0123456789abcdef');
});
