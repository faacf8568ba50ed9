import { randomBytes } from 'node:crypto';
import { createReplayMemory, nextTokenId } from './replay-memory';

const beganSeconds = 1_000_000;
const memoryOf = () => createReplayMemory({ beganSeconds, toleranceSeconds: 5, lifetimeSeconds: 30 });
const tokenOf = (jti: string, given: { iss?: string; iat?: number } = {}) => ({
  iss: 'gateway',
  iat: beganSeconds,
  jti,
  ...given,
});
const newSigner = (): string => randomBytes(12).toString('base64url');

test('each of 100,000 tokens is accepted once, even if tokens arrive thousands of places out of order', () => {
  const memory = memoryOf();
  const signer = newSigner();
  const numbers = Array.from({ length: 100_000 }, (_, index) =>
    index % 5_000 < 2_500 ? index + 2_501 : index - 2_499,
  );
  const take = (number: number) => memory.refuse(tokenOf(`${signer}.${number}`), beganSeconds);
  expect(new Set(numbers.map(take))).toEqual(new Set([undefined]));
  expect(new Set(numbers.slice(-60_000).map(take))).toEqual(new Set(['used before']));
});

test('a token too far behind the highest number of its signer is refused', () => {
  const memory = memoryOf();
  const signer = newSigner();
  expect(memory.refuse(tokenOf(`${signer}.1000000`), beganSeconds)).toBeUndefined();
  expect(memory.refuse(tokenOf(`${signer}.5`), beganSeconds)).toBe('too far behind');
  expect(memory.refuse(tokenOf(`${signer}.999999`), beganSeconds)).toBeUndefined();
});

test('a token signed before the process started is refused, because the memory was lost with the last process', () => {
  const [jti, later] = [nextTokenId('gateway', 'hosting'), nextTokenId('gateway', 'hosting')];
  expect(memoryOf().refuse(tokenOf(jti), beganSeconds)).toBeUndefined();
  expect(memoryOf().refuse(tokenOf(jti, { iat: beganSeconds - 6 }), beganSeconds)).toBe('older than this process');
  // A token is accepted if its signer's clock is up to five seconds slow.
  expect(memoryOf().refuse(tokenOf(later, { iat: beganSeconds - 5 }), beganSeconds)).toBeUndefined();
});

test('each issuer has token numbers of its own, so none can use up those of another', () => {
  const memory = memoryOf();
  const jti = `${newSigner()}.7`;
  expect(memory.refuse(tokenOf(jti, { iss: 'compute' }), beganSeconds)).toBeUndefined();
  expect(memory.refuse(tokenOf(jti, { iss: 'hosting' }), beganSeconds)).toBeUndefined();
});

test('a signer is forgotten once its last token has expired, and at most 1,024 are remembered', () => {
  const memory = memoryOf();
  const taken = (iat: number): number => {
    let count = 0;
    while (count < 3_000 && memory.refuse(tokenOf(`${newSigner()}.1`, { iat }), iat) === undefined) count += 1;
    return count;
  };
  expect(taken(beganSeconds)).toBe(1_024);
  expect(taken(beganSeconds + 41)).toBe(1_024);
});

test.each([
  '',
  'x',
  `${'a'.repeat(16)}.0`,
  `${'a'.repeat(16)}.-1`,
  `${'a'.repeat(16)}.1e3`,
  `${'a'.repeat(16)}.${'9'.repeat(30)}`,
])('the malformed token id %j is refused', (jti) => {
  expect(memoryOf().refuse(tokenOf(jti), beganSeconds)).toBe('no id of ours');
});
