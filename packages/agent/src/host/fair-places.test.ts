import { FairPlaces } from './fair-places';

const never = (): AbortSignal => new AbortController().signal;

/** Takes places, and records the owners in the order in which they got one. */
function party(places: FairPlaces): {
  entered: string[];
  take(owner: string): void;
  leaves: Map<string, (() => void)[]>;
} {
  const entered: string[] = [];
  const leaves = new Map<string, (() => void)[]>();
  const take = (owner: string): void => {
    void places.take(owner, never()).then((leave) => {
      entered.push(owner);
      leaves.set(owner, [...(leaves.get(owner) ?? []), leave]);
    });
  };
  return { entered, take, leaves };
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('however many organisations are greedy, each gets a place, and a place stays free for a newcomer', async () => {
  const { entered, take } = party(new FairPlaces(8));
  for (const owner of ['a', 'b', 'c']) for (let number = 0; number < 20; number += 1) take(owner);
  await settled();
  expect(new Set(entered)).toEqual(new Set(['a', 'b', 'c']));
  expect(entered.length).toBeLessThan(8);
  take('newcomer');
  await settled();
  expect(entered.at(-1)).toBe('newcomer');
});

test('a place that becomes free goes to the organisation that holds the fewest', async () => {
  const { entered, take, leaves } = party(new FairPlaces(2));
  take('a');
  await settled();
  take('a');
  take('b');
  take('c');
  await settled();
  expect(entered).toEqual(['a', 'b']);
  leaves.get('b')?.[0]?.();
  await settled();
  expect(entered).toEqual(['a', 'b', 'c']);
});

test('a caller that stops waiting takes no place', async () => {
  const places = new FairPlaces(1);
  const leave = await places.take('a', never());
  const caller = new AbortController();
  const waiting = places.take('b', caller.signal);
  caller.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  leave();
  await expect(places.take('c', never())).resolves.toBeInstanceOf(Function);
});
