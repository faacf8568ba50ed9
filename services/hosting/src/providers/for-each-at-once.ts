/**
 * Runs `work` for every item, `atOnce` at a time. After the first failure of `work` or of the iterator no further item
 * is begun. Rejects with a failure when all running work has ended.
 */
export async function forEachAtOnce<Item>(
  atOnce: number,
  items: Iterable<Item> | AsyncIterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let hasFailed = false;
  const run = async (): Promise<void> => {
    try {
      for (let next = await queue.next(); next.done !== true && !hasFailed; next = await queue.next())
        await work(next.value);
    } catch (error) {
      hasFailed = true;
      throw error;
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: atOnce }, run));
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason;
}
