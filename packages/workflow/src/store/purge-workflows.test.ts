import { openWorld, type World } from '../testing/world';
import { purgeWorkflows } from './purge-workflows';

let world: World;
beforeEach(async () => {
  world = await openWorld('postgres');
});
afterEach(() => world.close());

const started = async (): Promise<string> => (await world.start({ kind: 'done' })).workflowId;
const ids = async (): Promise<string[]> =>
  (await world.pool.query<{ id: string }>('SELECT id FROM workflow')).rows.map(({ id }) => id);

it('forgets workflows 120 days after their end, and never one that has not ended', async () => {
  const [young, waiting] = [await started(), await started()];
  await world.pool.query(`UPDATE workflow SET created_at = now() - interval '200 days'`);
  await world.pool.query(
    `UPDATE workflow SET status = 'succeeded', finished_at = now() - interval '119 days' WHERE id = $1`,
    [young],
  );
  await world.pool.query(
    `UPDATE workflow SET status = 'needs_attention', error = '{"code": "step_failed"}' WHERE id = $1`,
    [waiting],
  );
  await world.pool.query(`
    INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id, status, error, finished_at)
    SELECT gen_random_uuid(), 'done', n::text, 'box', n::text, gen_random_uuid(), 'live', '{}', 'request-1', 'failed', '{"code": "step_failed"}',
      now() - interval '121 days' FROM generate_series(1, 2500) n`);
  while (await purgeWorkflows(world.database.sql()));
  expect(new Set(await ids())).toEqual(new Set([young, waiting]));
});
