import { InvariantViolated, until } from './wait';

test('a condition is asked at least 50 times, however late it is', async () => {
  let looks = 0;
  const never = async (): Promise<false> => {
    looks += 1;
    return false;
  };
  await expect(until(never, { timeoutMs: 0, everyMs: 1, what: 'the moon' })).rejects.toThrow(
    'the moon did not come true',
  );
  expect(looks).toBe(50);
});

test('a condition that throws is asked again, and its last error is the cause', async () => {
  let looks = 0;
  const late = (): number => {
    looks += 1;
    if (looks < 3) throw new Error('not yet');
    return looks;
  };
  expect(await until(late, { everyMs: 1 })).toBe(3);
  const cause = new Error('no');
  await expect(until(() => Promise.reject(cause), { timeoutMs: 0, everyMs: 1 })).rejects.toMatchObject({ cause });
});

test('a violated invariant ends the wait at once', async () => {
  let looks = 0;
  const broken = (): never => {
    looks += 1;
    throw new InvariantViolated('two of one');
  };
  await expect(until(broken)).rejects.toThrow('two of one');
  expect(looks).toBe(1);
});
