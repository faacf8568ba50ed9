import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { scaled, timeLimit } from './time-outs';

const usual = process.env['DRYDOCK_TIMEOUT_SCALE'];
afterEach(() => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = usual;
});

it.each([
  ['10', 1_000],
  ['1.5', 150],
  ['1', 100],
  // An invalid value changes nothing here, because the process refuses it when it reads its settings.
  ['0.1', 100],
  ['fast', 100],
  ['', 100],
])('with DRYDOCK_TIMEOUT_SCALE=%j 100 ms are %i', (scale, ms) => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
  expect(scaled(100)).toBe(ms);
});

it('without a scale a time-out does not change', () => {
  delete process.env['DRYDOCK_TIMEOUT_SCALE'];
  expect(scaled(100)).toBe(100);
});

test('a time limit that is joined with another signal aborts, although nobody else holds it', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const joined = AbortSignal.any([timeLimit(500), new AbortController().signal]);
  const aborted = once(joined, 'abort');
  // A later turn of the event loop, because a WeakRef holds its target until the end of its own.
  await new Promise(setImmediate);
  collectGarbage();
  await aborted;
  expect(joined.reason).toMatchObject({ name: 'TimeoutError' });
});
