import { createVerificationCache } from './verification-cache';

/** Creates a cache with a clock and a keys service that the test controls. */
function stage() {
  let clockMs = 0;
  const questions: Array<{ token: string; answer(value: string): void; fail(): void }> = [];
  const cache = createVerificationCache<string>({
    ask: (token) =>
      new Promise((resolve, reject) =>
        questions.push({ token, answer: resolve, fail: () => reject(new Error('gone')) }),
      ),
    nowMs: () => clockMs,
    entriesMax: 2,
  });
  return { cache, questions, advance: (ms: number) => (clockMs += ms) };
}

describe('an answer of keys', () => {
  it('is trusted for less than a second, from the moment when keys was asked', async () => {
    const { cache, questions, advance } = stage();
    const asking = cache.verify('k', 't');
    advance(900);
    questions[0]?.answer('good');
    expect(await asking).toBe('good');
    expect(cache.fresh('k')).toBe('good');
    advance(99);
    expect(cache.fresh('k')).toBe('good');
    advance(1);
    expect(cache.fresh('k')).toBeUndefined();
    expect(cache.last('k')).toBe('good');
  });

  it('is shared with callers who come within a second, and keys is asked again for later callers', async () => {
    const { cache, questions, advance } = stage();
    const first = cache.verify('k', 't');
    const joined = cache.verify('k', 't');
    expect(questions).toHaveLength(1);
    advance(1_000);
    const later = cache.verify('k', 't');
    expect(questions).toHaveLength(2);
    questions[0]?.answer('old');
    questions[1]?.answer('new');
    expect(await first).toBe('old');
    expect(await later).toBe('new');
    // The second caller joined in time. But the answer came so late that only the caller who started the look-up may
    // use it.
    expect(await joined).toBe('new');
    expect(questions).toHaveLength(2);
  });

  it('is renewed in the background before it is too old, and is not trusted for longer', async () => {
    const { cache, questions, advance } = stage();
    const asking = cache.verify('k', 't');
    questions[0]?.answer('good');
    await asking;
    advance(749);
    cache.renew('k', 't');
    expect(questions).toHaveLength(1);
    advance(1);
    cache.renew('k', 't');
    cache.renew('k', 't');
    expect(questions).toHaveLength(2);
    expect(cache.fresh('k')).toBe('good');
    advance(249);
    expect(cache.fresh('k')).toBe('good');
    advance(1);
    expect(cache.fresh('k')).toBeUndefined();
    const joined = cache.verify('k', 't');
    expect(questions).toHaveLength(2);
    questions[1]?.answer('revoked');
    expect(await joined).toBe('revoked');
    expect(cache.fresh('k')).toBe('revoked');
    advance(750);
    expect(cache.fresh('k')).toBeUndefined();
  });

  it('is trusted for its whole time even if the renewal fails', async () => {
    const { cache, questions, advance } = stage();
    const asking = cache.verify('k', 't');
    questions[0]?.answer('good');
    await asking;
    advance(900);
    cache.renew('k', 't');
    questions[1]?.fail();
    await new Promise((resolve) => setImmediate(resolve));
    cache.renew('k', 't');
    expect(questions).toHaveLength(2);
    expect(cache.fresh('k')).toBe('good');
    advance(100);
    const again = cache.verify('k', 't');
    questions[2]?.answer('good again');
    expect(await again).toBe('good again');
  });

  it('is not replaced by the answer to an earlier question', async () => {
    const { cache, questions, advance } = stage();
    const first = cache.verify('k', 't');
    questions[0]?.answer('good');
    await first;
    advance(900);
    cache.renew('k', 't');
    // The renewal started too long ago for another caller to join.
    advance(1_000);
    const later = cache.verify('k', 't');
    questions[2]?.answer('revoked');
    expect(await later).toBe('revoked');
    questions[1]?.answer('good');
    await new Promise((resolve) => setImmediate(resolve));
    expect(cache.fresh('k')).toBe('revoked');
  });

  it('is not kept if it is an error, and the oldest is dropped when the cache is full', async () => {
    const { cache, questions } = stage();
    const failing = cache.verify('k', 't');
    questions[0]?.fail();
    await expect(failing).rejects.toThrow('gone');
    expect(cache.last('k')).toBeUndefined();
    for (const key of ['a', 'b', 'c']) {
      const asking = cache.verify(key, key);
      questions.at(-1)?.answer(key);
      await asking;
    }
    expect([cache.last('a'), cache.last('b'), cache.last('c')]).toEqual([undefined, 'b', 'c']);
  });
});
