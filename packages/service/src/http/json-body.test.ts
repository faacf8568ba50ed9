import { Problem } from '@drydock/contracts/platform/problem';
import { canonicalJson } from '../effects/idempotency';
import { findJsonFault, parseJsonBody } from './json-body';

const refusalOf = (bytes: Buffer): Problem | undefined => {
  try {
    parseJsonBody(bytes, 'malformed_json');
    return undefined;
  } catch (error) {
    return error instanceof Problem ? error : undefined;
  }
};
const refuses = (bytes: Buffer): boolean => refusalOf(bytes)?.code === 'malformed_json';

test.each([
  ['nothing', ''],
  ['half an object', '{"a":1'],
  ['trailing garbage', '{"a":1} x'],
  ['a second document', '{"a":1}{"a":2}'],
  ['a byte order mark', '\ufeff{"a":1}'],
  ['the same key twice', '{"a":1,"a":2}'],
  ['the same key twice, once escaped', '{"a":1,"\\u0061":2}'],
  ['the same key twice, deep', '{"x":[{"b":{},"a":1,"b":2}]}'],
  ['__proto__', '{"__proto__":{"polluted":1}}'],
  ['__proto__, escaped', '{"\\u005f_proto__":{"polluted":1}}'],
  ['constructor.prototype', '{"constructor":{"prototype":{"polluted":1}}}'],
  ['fifty thousand levels', `${'['.repeat(50_000)}${']'.repeat(50_000)}`],
  ['fifty thousand open brackets', '['.repeat(50_000)],
  ['a number beyond a double', '{"a":1e400}'],
  ['NaN', '{"a":NaN}'],
  ['NUL in a string', '{"a":"x\\u0000"}'],
  ['NUL in a key', '{"x\\u0000":1}'],
  ['half a surrogate pair', '{"a":"\\ud800"}'],
])('%s is refused', (_name, text) => {
  expect(refuses(Buffer.from(text))).toBe(true);
});

test('a string without a closing quote is read once, not once from each quote in it', () => {
  // If the text were searched again from every quote, 100 kB would block the process for seconds. A brace in a string
  // is no structure.
  expect(findJsonFault(`"${'\\"{'.repeat(40)}`)).toBeUndefined();
  expect(findJsonFault(`"${'\\"{'.repeat(40)}\\`)).toBeUndefined();
  expect(refuses(Buffer.from('\\"'.repeat(50_000)))).toBe(true);
});

test('the log never gets a refused body, because a body may contain a secret', () => {
  for (const text of ['{"secret_access_key": wJalrXUtnFEMI}', '{"secret_access_key":"wJalrXUtnFEMI"']) {
    const refusal = refusalOf(Buffer.from(text));
    expect(refusal?.code).toBe('malformed_json');
    expect(`${refusal?.message} ${JSON.stringify(refusal?.details)}`).not.toMatch(/wJal|ess_key/);
  }
});

test('UTF-16 and invalid UTF-8 are refused', () => {
  expect(refuses(Buffer.from('{"a":1}', 'utf16le'))).toBe(true);
  expect(refuses(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).toBe(true);
});

test('keys that only look dangerous, braces in strings and whole surrogate pairs are accepted', () => {
  const text = '{"toString":"}{","a\\"b":[{"a":1},{"a":2}],"constructor":"x","emoji":"\\ud83d\\ude00","n":null}';
  expect(parseJsonBody(Buffer.from(text), 'malformed_json')).toEqual(JSON.parse(text));
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('a fingerprint ignores the order of keys and white space, and differs with every value', () => {
  expect(canonicalJson({ b: [1, { d: null, c: 'x' }], a: 1 })).toBe(
    canonicalJson(JSON.parse('{ "a": 1, "b": [1, {"c":"x","d":null}] }')),
  );
  expect(canonicalJson({ a: [1, 2] })).not.toBe(canonicalJson({ a: [2, 1] }));
  expect(canonicalJson({ a: '1' })).not.toBe(canonicalJson({ a: 1 }));
});
