import { Problem } from '@drydock/contracts/platform/problem';
import {
  type BoundRequest,
  rememberTokens,
  signInternalToken,
  tokenKey,
  tokenKeys,
  verifyInternalToken,
} from '../access/internal-token';
import { createPager } from '../http/paging';
import { deriveKeys, nameOfSecret, secretBuffers, secretNamed, secretsForm, secretsIn } from './secrets';

const [before, after, strange] = ['a1'.repeat(32), 'b2'.repeat(32), 'c3'.repeat(32)];
/** The values of a variable in each phase of a rotation. */
const phases = [before, `${before},${after}`, `${after},${before}`, after];

test('a variable has one or more secrets, and an empty, short or malformed secret is refused', () => {
  expect(phases.map((text) => [secretsForm.test(text), secretsIn(text)[0]])).toEqual([
    [true, before],
    [true, before],
    [true, after],
    [true, after],
  ]);
  for (const wrong of ['', `${before},`, `,${before}`, `${before}, ${after}`, `${before},abcd`, `${before};${after}`])
    expect([wrong, secretsForm.test(wrong)]).toEqual([wrong, false]);
  expect(() => secretBuffers(`${before},abcd`)).toThrow(/32 bytes/);
});

test('a secret is found by its name for as long as it is accepted', () => {
  const name = nameOfSecret(before);
  expect(name).toMatch(/^[0-9a-f]{8}$/);
  expect(before).not.toContain(name);
  expect(phases.slice(0, 3).map((text) => secretNamed(text, name))).toEqual([before, before, before]);
  expect(secretNamed(`${after},${before}`, undefined)).toBe(after);
  expect(() => secretNamed(after, name)).toThrow('no longer accepted');
});

test('processes in neighbouring phases of a rotation accept each other’s tokens, but none of another secret', () => {
  const bound: BoundRequest = { requestId: 'request-1', method: 'POST', path: '/internal/verify' };
  const parties = { issuer: 'gateway', audience: 'keys' };
  const isTaken = (signer: string, verifier: string): boolean => {
    const token = signInternalToken(tokenKey(signer), parties, bound);
    const expected = {
      keys: tokenKeys(verifier),
      used: rememberTokens(),
      ...parties,
      method: 'POST',
      path: '/internal/verify',
    };
    try {
      return verifyInternalToken(token, expected).request_id === 'request-1';
    } catch {
      return false;
    }
  };
  for (const [at, phase] of phases.entries()) {
    const near = phases.slice(Math.max(0, at - 1), at + 2);
    expect(near.map((neighbour) => [isTaken(phase, neighbour), isTaken(neighbour, phase)])).toEqual(
      near.map(() => [true, true]),
    );
    expect([isTaken(strange, phase), isTaken(phase, strange)]).toEqual([false, false]);
  }
  expect([isTaken(before, after), isTaken(after, before)]).toEqual([false, false]);
});

test('a cursor from one phase of a rotation works in the next', () => {
  const now = new Date();
  const binding = { list: 'listThings', keyId: 'key-1', filter: '' };
  const pagerOf = (text: string) => createPager(deriveKeys(text, 'cursor'));
  const begin = (text: string): string =>
    pagerOf(text).pageOf([2, 1], { limit: 1, after: null }, binding, now, { positionOf: String, view: String }).page
      .next_cursor ?? '';
  const goOn = (cursor: string, text: string): string | null => {
    try {
      return pagerOf(text).read({ cursor }, binding, now).after;
    } catch (error) {
      return error instanceof Problem ? error.code : String(error);
    }
  };
  expect(phases.slice(1).map((next, at) => goOn(begin(phases[at] ?? ''), next))).toEqual(['2', '2', '2']);
  expect(goOn(begin(before), after)).toBe('invalid_cursor');
});
