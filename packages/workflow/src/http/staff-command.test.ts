/**
 * @processes
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { queueBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';

const [backend = 'postgres'] = queueBackends();
/** The program of a service, as staff run it. */
const program = `require(${JSON.stringify(path.resolve(__dirname, '../../dist/http/staff-command.js'))})
  .runStaffCommand('boxes', () => process.env, { one_way: 'The box stays as it is.' })`;

let world: World;
let isBroken = true;
beforeAll(async () => {
  world = await openWorld(backend);
  await world.pool.query(readFileSync(path.resolve(__dirname, '../../../service/prisma/audit.sql'), 'utf8'));
  const oneWay = workflow({ kind: 'one_way', input: z.object({}) })
    .pointOfNoReturn()
    .step('swap', {
      run: async () => {
        if (isBroken) throw new Error('no space left\u001b[2J on /dev/sdb');
      },
      attemptsMax: 1,
    })
    .build();
  world.engine([oneWay]);
});
afterAll(() => world.close());

const staff = (...words: string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const env = { PATH: process.env['PATH'], DATABASE_URL: world.databaseUrl };
    execFile(process.execPath, ['-e', program, '--', ...words], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
const reaches = (workflowId: string, status: string) =>
  until(async () => (await world.status(workflowId)) === status, { what: status });
async function park(
  orgId: string,
  subject = { type: 'database', id: uuidv7() },
): Promise<{ workflowId: string; target: string }> {
  isBroken = true;
  const { workflowId } = await world.start({ kind: 'one_way', orgId, subject, resourceKey: subject.id });
  await reaches(workflowId, 'needs_attention');
  return { workflowId, target: `/v1/databases/${subject.id}` };
}

test('staff see what waits in every organisation, with its cause, and decide by its id; the audit log has what they decided', async () => {
  const orgs = [uuidv7(), uuidv7()];
  const first = await park(orgs[0] ?? '');
  const second = await park(orgs[1] ?? '');
  const listed = await staff('parked');
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  const [one = '', other = ''] = listed.stdout.split(/^(?=\S)/m);
  expect(one.split('\n')[0]).toBe(`${first.workflowId}  one_way  live  organisation ${orgs[0]}`);
  expect(one).toContain(`  ${first.target}, at swap since 20`);
  expect(one).toContain('  step_failed: ');
  // The cause contains a control character that a terminal would obey. The command shows a space instead.
  expect(one).toContain('no space left [2J on /dev/sdb');
  expect(other.split('\n')[0]).toBe(`${second.workflowId}  one_way  live  organisation ${orgs[1]}`);

  isBroken = false;
  expect(await staff('retry', first.workflowId)).toMatchObject({ code: 0, stderr: '' });
  await reaches(first.workflowId, 'succeeded');
  expect(await staff('abandon', second.workflowId)).toMatchObject({ code: 0, stderr: '' });
  await reaches(second.workflowId, 'failed');
  expect(await staff('parked')).toEqual({ code: 0, stdout: 'nothing waits for staff\n', stderr: '' });

  const { rows } = await world.pool.query(
    'SELECT org_id, mode, actor_key_id, action, target, workflow_id FROM audit_outbox ORDER BY seq',
  );
  const decided = { mode: 'live', actor_key_id: null };
  expect(rows).toEqual([
    { ...decided, org_id: orgs[0], action: 'workflow.retry', target: first.target, workflow_id: first.workflowId },
    { ...decided, org_id: orgs[1], action: 'workflow.abandon', target: second.target, workflow_id: second.workflowId },
  ]);
  const { rows: ended } = await world.pool.query('SELECT error FROM workflow WHERE id = $1', [second.workflowId]);
  expect(ended).toMatchObject([{ error: { code: 'abandoned', detail: 'The box stays as it is.' } }]);
});

test('workflows of the platform itself are listed and retried too, although no API key reaches them', async () => {
  const { workflowId } = await park(uuidv7(), { type: 'platform', id: 'nightly' });
  expect((await staff('parked')).stdout).toContain('platform nightly, at swap');
  isBroken = false;
  expect((await staff('retry', workflowId)).stdout).toBe('retry: a worker takes it up now\n');
  await reaches(workflowId, 'succeeded');
});

test('a workflow that is unknown or over, and a malformed id, are refused, and nothing is decided', async () => {
  const { workflowId } = await park(uuidv7());
  const unknown = uuidv7();
  expect(await staff('retry', unknown)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`no workflow ${unknown}`),
  });
  for (const words of [
    ['retry'],
    ['retry', 'everything'],
    ['abandon', workflowId, workflowId],
    ['parked', workflowId],
    ['list'],
  ])
    expect(await staff(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining('usage') });
  isBroken = false;
  await staff('retry', workflowId);
  await reaches(workflowId, 'succeeded');
  expect(await staff('abandon', workflowId)).toMatchObject({
    code: 1,
    stderr: 'The workflow does not wait for staff\n',
  });
});

test('staff are told if more workflows wait than are listed', async () => {
  const { workflowId } = await park(uuidv7());
  expect((await staff('parked')).stdout).not.toContain('More than');
  await world.pool.query(
    `INSERT INTO workflow SELECT (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid(),
        'resource_key', gen_random_uuid()))).* FROM workflow w, generate_series(1, 200) WHERE w.id = $1`,
    [workflowId],
  );
  const { stdout } = await staff('parked');
  expect(stdout.match(/^\S+ {2}one_way {2}live/gm)).toHaveLength(200);
  expect(stdout).toContain('More than these 200 wait.');
});
