/**
 * @processes
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { type CrashFixture, crashEveryStep } from './crash-every-step';

const definition = { kind: 'sleep', pointOfNoReturn: 1, steps: [{ name: 'only' }] };
const one = { only: (name: string) => name === 'repeat at sleep.only.after_effect' };
const spawned: ChildProcess[] = [];

const fixtureWith = (more: Partial<CrashFixture<{ workflowId: string }>>): CrashFixture<{ workflowId: string }> => ({
  leases: { expire: async () => 0n, fenceOf: async () => 0n },
  spawnWorker: () => {
    const worker = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
    spawned.push(worker);
    return worker;
  },
  start: async () => ({ workflowId: 'workflow' }),
  look: async () => ({ status: 'running', steps: [], unfinished: 1 }),
  ledger: async () => [],
  judge: async () => 'old',
  ...more,
});
const allEnded = (): boolean => spawned.length > 0 && spawned.every(({ signalCode }) => signalCode === 'SIGKILL');

it('gives up in its own time, also within a start, and leaves no worker behind', async () => {
  const fixture = fixtureWith({ start: () => new Promise(() => undefined) });
  await expect(crashEveryStep(definition, fixture, { ...one, limitMs: 100 })).rejects.toThrow(
    'the time for all cases is over',
  );
  expect(allEnded()).toBe(true);
});

it.each([
  [
    'two unfinished workflows on one resource',
    async () => ({ status: 'running', steps: [], unfinished: 2 }),
    '2 unfinished workflows',
  ],
  [
    'an expectation of a look that fails',
    async () => {
      expect('audit rows').toBe('one');
      throw new Error('not reached');
    },
    'audit rows',
  ],
])('%s ends the case at once', async (_name, look, message) => {
  let looks = 0;
  const counted = (): ReturnType<typeof look> => {
    looks += 1;
    return look();
  };
  await expect(crashEveryStep(definition, fixtureWith({ look: counted }), one)).rejects.toThrow(message);
  expect(looks).toBe(1);
  expect(allEnded()).toBe(true);
});
