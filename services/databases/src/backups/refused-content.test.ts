/**
 * Tests a backup of a schema with a function of 70 MB, which cannot be packed.
 *
 * @tier long
 * @processes
 */
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { type DatabasesWorld, makeDatabase, openWorld, query } from '../../test/databases-world';

let world: DatabasesWorld;
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

it('a backup that an object of the schema prevents ends at its first attempt, and names the object and the reason', async () => {
  const { id, url } = await makeDatabase(world);
  await query(
    url,
    `CREATE FUNCTION large() RETURNS int LANGUAGE sql AS $$ SELECT 1 /* ${'x'.repeat(70_000_000)} */ $$`,
  );
  const accepted = await world.api.call('POST', `/v1/databases/${id}/backups`, { body: {} });
  const view = await ended(world, accepted.headers['location']);
  expect(view).toMatchObject({
    status: 'failed',
    error: {
      code: 'database_content_refused',
      findings: [
        {
          level: 'ERROR',
          code: 'statement_refused',
          detail: expect.stringMatching(/^function public\.large\(\): .*70000/),
        },
      ],
    },
  });
  expect(view.steps.find(({ name }) => name === 'pack')).toMatchObject({ attempts: 1 });
});
