import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { attempt } from './attempt';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

it('frees the signals of attempts that are over, however many a worker has made', async () => {
  const never = new AbortController().signal;
  const limits = { name: 'step', timeoutSeconds: 60, lease: never, stopping: never };
  const given: WeakRef<AbortSignal>[] = [];
  for (let made = 0; made < 200; made += 1)
    await attempt(limits, async (signal) => void given.push(new WeakRef(signal)));
  await turn();
  collectGarbage();
  expect(given.filter((signal) => signal.deref() !== undefined).length).toBeLessThan(10);
});

it.each(['lease', 'stopping'] as const)(
  'aborts the signal of running work with the reason of its %s',
  async (source) => {
    const ends = { lease: new AbortController(), stopping: new AbortController() };
    const limits = { name: 'step', timeoutSeconds: 60, lease: ends.lease.signal, stopping: ends.stopping.signal };
    const reason = new Error(source);
    let given: AbortSignal | undefined;
    const over = attempt(limits, async (signal) => {
      given = signal;
      ends[source].abort(reason);
      signal.throwIfAborted();
    });
    expect((await over).end).toBe(source === 'lease' ? 'left' : 'interrupted');
    expect(given?.reason).toBe(reason);
  },
);
