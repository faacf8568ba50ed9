import { until } from '@drydock/testing/wait';
import { openWorld, type World } from '../testing/world';
import { createListener } from './listener';

let world: World;
beforeAll(async () => {
  world = await openWorld('postgres');
});
afterAll(() => world.close());

test('one listener of a database is the first; when it goes, another one is', async () => {
  const open = () => createListener({ connectionString: world.databaseUrl, log: world.log });
  const one = open();
  await until(() => one.isFirst(), { what: 'the first' });
  const other = open();
  const heard = new Promise<void>((resolve) => other.onDue(resolve)); // a listener calls back once it is connected
  await heard;
  expect([await one.isFirst(), await other.isFirst()]).toEqual([true, false]);
  await one.close();
  await until(() => other.isFirst(), { what: 'the next one' });
  await other.close();
});
