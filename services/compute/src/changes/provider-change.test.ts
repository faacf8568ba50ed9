import { createLog } from '@drydock/service/telemetry';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { LeaseLost, StepFailure, StepWait } from '@drydock/workflow/definition';
import { uuidv7 } from 'uuidv7';
import { startApi } from '../../test/compute-api';
import { type ComputeDatabase, openDatabase } from '../context/database.store';
import type { Accepted, Change } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { type Step, sendOnce } from './provider-change';
import { noteSend } from './provider-send.store';

let api: ServiceApi;
let database: ComputeDatabase;
beforeAll(async () => {
  api = await startApi(callerOf());
  database = openDatabase(api.postgres.url, { max: 2 });
});
afterAll(async () => {
  await database.close();
  await api.close();
});

const accepted: Accepted = { actionId: '1', machineId: 'm', snapshotId: null };

/** Returns a provider that finds no trace of a dead worker's change, and the list of the changes that it is sent. */
function nobody(change: Partial<ComputeDriver> = {}) {
  const sent: Change[] = [];
  const send = async (one: Change) => {
    sent.push(one);
    return accepted;
  };
  const driver = { find: async () => null, send, lostAnswerSeconds: 30, ...change } as unknown as ComputeDriver;
  return { driver, sent };
}

/**
 * Creates a workflow whose first worker died between the note of the send and the send. Returns the step of the second
 * worker.
 */
async function givenNote(): Promise<{ workflowId: string; step: Step }> {
  const workflowId = uuidv7();
  const sql = database.sql();
  await sql.query(
    `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, fence, lease_until)
     VALUES ($1::uuid, 'roll_back_server', $1::text, 'server', 's', gen_random_uuid(), 'live', '{}', 'test', 'running', 1, now() + interval '1 hour')`,
    [workflowId],
  );
  const signal = new AbortController().signal;
  const log = createLog({ service: 'test', level: 'silent' });
  const step = { workflowId, fence: '1', attempt: 1, signal, log, progress: () => undefined };
  expect(await noteSend(sql, step)).toBe(true);
  await sql.query('UPDATE workflow SET fence = 2 WHERE id = $1::uuid', [workflowId]);
  return { workflowId, step: { ...step, fence: '2', attempt: 2 } };
}
const sendBy = (step: Step, driver: ComputeDriver) =>
  sendOnce({ database }, step, {
    driver,
    change: { kind: 'rollback', reference: step.workflowId, machineId: 'm', snapshotId: 's' },
    checkpoint: '',
  });
const notesOf = (workflowId: string) =>
  database.sql().query('SELECT fence::text AS fence FROM provider_sends WHERE workflow_id = $1::uuid', [workflowId]);

it('a change that a dead worker may have sent is not sent again, and fails once the search has taken long enough', async () => {
  const { workflowId, step } = await givenNote();
  const { driver, sent } = nobody();
  await expect(sendBy(step, driver)).rejects.toBeInstanceOf(StepWait);
  await database
    .sql()
    .query("UPDATE provider_sends SET looking_since = now() - interval '31 s' WHERE workflow_id = $1::uuid", [
      workflowId,
    ]);
  await expect(sendBy(step, driver)).rejects.toMatchObject({ problem: { code: 'provider_not_accepted' } });
  expect([sent, await notesOf(workflowId)]).toEqual([[], [{ fence: '1' }]]);
});

it('a provider that recognises a repeated change gets it again, in case the dead worker had not sent it', async () => {
  const { workflowId, step } = await givenNote();
  const { driver, sent } = nobody({ recognisesRepeats: true });
  expect(await sendBy(step, driver)).toEqual(accepted);
  expect([sent.length, await notesOf(workflowId)]).toEqual([1, [{ fence: '2' }]]);
});

it('a transient refusal of the repeated change withdraws the note, and the step waits', async () => {
  const { workflowId, step } = await givenNote();
  const send = () => Promise.reject(new ComputeError('locked', 'somebody works on it'));
  await expect(sendBy(step, nobody({ recognisesRepeats: true, send }).driver)).rejects.toBeInstanceOf(StepWait);
  expect(await notesOf(workflowId)).toEqual([]);
});

it('a worker that has lost its claim sends nothing, even to a provider that recognises a repeated change', async () => {
  const { workflowId, step } = await givenNote();
  const { driver, sent } = nobody({ recognisesRepeats: true });
  await expect(sendBy({ ...step, fence: '1' }, driver)).rejects.toBeInstanceOf(LeaseLost);
  expect([sent, await notesOf(workflowId)]).toEqual([[], [{ fence: '1' }]]);
});

it('a change that the provider never accepts is given up, and not sent for ever', async () => {
  const { workflowId, step } = await givenNote();
  const { driver, sent } = nobody({ recognisesRepeats: true });
  await sendBy(
    step,
    nobody({ recognisesRepeats: true, send: () => Promise.reject(new ComputeError('ambiguous', 'no answer')) }).driver,
  ).catch(() => undefined);
  await database
    .sql()
    .query("UPDATE provider_sends SET looking_since = now() - interval '31 s' WHERE workflow_id = $1::uuid", [
      workflowId,
    ]);
  await expect(sendBy(step, driver)).rejects.toBeInstanceOf(StepFailure);
  expect(sent).toEqual([]);
});
