import { StepFailure, StepWait } from '@drydock/workflow/definition';
import type { ComputeReason } from '../providers/compute.types';
import { ComputeError } from '../providers/compute-provider';
import { readForStep } from './provider-failure';

/** Returns the error that a failed read causes in its step, and the alarms for staff. */
async function looking(reason: ComputeReason) {
  const alarms: unknown[] = [];
  const silent = () => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: (fields: object) => void alarms.push({ ...fields }) };
  const thrown: unknown = await readForStep(Promise.reject(new ComputeError(reason, 'as the provider said')), {
    attempt: 1,
    log,
  }).catch((error: unknown) => error);
  return { thrown, alarms };
}

it.each(['credentials_refused', 'rejected'] as const)(
  'pages staff when a read is refused as %s, because a change begins with reads',
  async (reason) => {
    const { thrown, alarms } = await looking(reason);
    expect(thrown).toBeInstanceOf(StepFailure);
    expect(alarms).toMatchObject([{ alarm: 'provider_refused', reason }]);
  },
);

it('pages nobody for a transient failure, and reads again later', async () => {
  const { thrown, alarms } = await looking('unavailable');
  expect(thrown).toBeInstanceOf(StepWait);
  expect(alarms).toEqual([]);
});
