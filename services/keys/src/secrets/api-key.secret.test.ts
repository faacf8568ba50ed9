import { uuidv7 } from 'uuidv7';
import { createKeySecrets } from './api-key.secret';

test('a derived secret depends only on caller, Idempotency-Key, record and service secret', () => {
  const origin = { callerKeyId: uuidv7(), rawIdempotencyKey: 'retry', recordId: uuidv7() };
  const derive = (change: Partial<typeof origin> = {}, serviceSecret = 'a1'.repeat(32)) =>
    createKeySecrets(serviceSecret).newSecret({ ...origin, ...change });
  expect(derive()).toMatch(/^[0-9A-Za-z]{43}$/);
  expect(derive()).toBe(derive());
  const others = [
    derive({ callerKeyId: uuidv7() }),
    derive({ rawIdempotencyKey: 'retry2' }),
    derive({ recordId: uuidv7() }),
    derive({}, 'b2'.repeat(32)),
    // The caller's id followed by the Idempotency-Key gives the same text as for the first secret. Only the boundary
    // between the two differs.
    derive({ callerKeyId: `${origin.callerKeyId}r`, rawIdempotencyKey: 'etry' }),
  ];
  expect(new Set([derive(), ...others]).size).toBe(6);
});

test('a secret is compared under the pepper of its hash, and new secrets are hashed with the newest pepper', () => {
  const serviceSecret = 'a1'.repeat(32);
  const [old, rotated, lost] = [
    createKeySecrets(serviceSecret),
    createKeySecrets(serviceSecret, { 2: 'b2'.repeat(32) }),
    createKeySecrets('c3'.repeat(32)),
  ];
  const secret = old.newSecret(null);
  expect(secret).toMatch(/^[0-9A-Za-z]{43}$/);
  const [before, after] = [old.hash(secret), rotated.hash(secret)];
  expect([before.pepperVersion, after.pepperVersion]).toEqual([1, 2]);
  expect(Buffer.from(before.secretHash).equals(after.secretHash)).toBe(false);
  expect([rotated.matches(secret, before), rotated.matches(secret, after)]).toEqual([true, true]);
  expect([old.matches(secret, after), lost.matches(secret, before), old.matches(secret, null)]).toEqual([
    false,
    false,
    false,
  ]);
});

test('random secrets and prefixes use every letter about equally', () => {
  const secrets = createKeySecrets('a1'.repeat(32));
  const counts = new Map<string, number>();
  for (let round = 0; round < 1_000; round += 1) {
    for (const letter of secrets.newSecret(null) + secrets.newPrefix())
      counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  const mean = (1_000 * 55) / 62;
  // The margin is six standard deviations, about 180.
  expect(counts.size).toBe(62);
  expect([...counts.values()].every((count) => Math.abs(count - mean) < 6 * Math.sqrt(mean))).toBe(true);
});

test('during a rotation of the service’s secret old keys stay valid and replays work; a use rehashes', () => {
  const [before, after] = ['a1'.repeat(32), 'b2'.repeat(32)];
  const [old, both, renewed] = [
    createKeySecrets(before),
    createKeySecrets(`${after},${before}`),
    createKeySecrets(after),
  ];
  const origin = { callerKeyId: uuidv7(), rawIdempotencyKey: 'retry', recordId: uuidv7() };
  const shown = old.newSecret(origin);
  const stored = old.hash(shown);
  expect([both.matches(shown, stored), renewed.matches(shown, stored), both.matches('x', stored)]).toEqual([
    true,
    false,
    false,
  ]);
  expect([both.newSecret(origin) === shown, both.deriveAgain(origin, old.madeWith)]).toEqual([false, shown]);
  expect(() => renewed.deriveAgain(origin, old.madeWith)).toThrow('no longer accepted');
  const again = both.renew(shown, stored);
  expect(again !== null && renewed.matches(shown, again)).toBe(true);
  expect([again && both.renew(shown, again), old.renew(shown, stored)]).toEqual([null, null]);
  expect(createKeySecrets(before, { 2: after }).renew(shown, stored)?.pepperVersion).toBe(2);
});
