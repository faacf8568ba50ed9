/**
 * Runs `work` for every item, so many at once. Rejects with a failure, after which no new one begins, once none is at work any more.
 */
export async function forEachAtOnce<Item>(atOnce: number, items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  let hasFailed = false;
  const run = async (): Promise<void> => {
    for (let next = queue.next(); next.done !== true && !hasFailed; next = queue.next()) {
      await work(next.value).catch((error: unknown) => {
        hasFailed = true;
        throw error;
      });
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: atOnce }, run));
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
}
