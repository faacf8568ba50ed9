import { type StepContext, StepFailure } from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import { cutOver } from './cut-over';

const unreachable = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });

/** Resolves with the error of the step `cutover`, whose agent fails before the switch. */
async function errorOf(counts: { attempt: number; failures: number }): Promise<unknown> {
  const step = {
    workflowId: 'w',
    orgId: 'o',
    mode: 'live',
    subject: { type: 'database', id: 'd' },
    input: {},
    outputs: {},
    fence: '1',
    signal: new AbortController().signal,
    ...counts,
  } as unknown as StepContext<unknown, unknown>;
  const provider = {
    describe: async () => ({ switched: [], upgrade: { upgradeId: 'w', phase: 'prepared' } }),
    cutover: () => Promise.reject(unreachable),
  };
  const context = { provider } as unknown as WorkContext;
  return cutOver(context, step, { upgradeId: 'w' }, { takenBack: 'upgrade_failed' }).then(
    () => null,
    (error: unknown) => error,
  );
}

it('a switch is not given up after any number of attempts that an outage has ended', async () => {
  expect(await errorOf({ attempt: 30, failures: 0 })).toBe(unreachable);
  expect(await errorOf({ attempt: 30, failures: 2 })).toBe(unreachable);
});

it('a switch that has failed four times is undone, and staff are not called', async () => {
  const error = await errorOf({ attempt: 4, failures: 3 });
  expect(error).toBeInstanceOf(StepFailure);
  expect(error).toMatchObject({ isConcluded: true, problem: { code: 'upgrade_failed' } });
});
