/**
 * Starts the agent while a port of a database is taken.
 *
 * @tier long
 * @processes
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import {
  claim,
  clearHost,
  codeOf,
  createDatabase,
  customer,
  findInstance,
  killHost,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';
import { createFilled, prepareMove, runStage, upgradeId } from '../../test/move';

const waits = { timeoutMs: 120_000, everyMs: 200 };

let host: TestHost;
beforeEach(async () => {
  host = await spawnHost(await newHostFolder());
});
const taken: Server[] = [];
afterEach(async () => {
  for (const server of taken.splice(0)) server.close();
  await clearHost(host);
});

/** Takes a port. The servers of a killed agent end soon after it, so the port may not be free yet. */
function occupy(port: number): Promise<Server> {
  return until(async () => {
    const server = createServer((socket) => socket.destroy()).listen(port, '127.0.0.1');
    await once(server, 'listening');
    taken.push(server);
    return server;
  }, waits);
}

test('a target of an upgrade that cannot start keeps nobody from the serving instance, and comes up once it can', async () => {
  const databaseId = newDatabaseId();
  const database = await createFilled(host.client, databaseId);
  await prepareMove(host.client, databaseId);
  const { port } = findInstance(host, databaseId, 'target');
  await killHost(host);
  const blocker = await occupy(port);
  host = await spawnHost(host.folder);

  const session = new pg.Client(customer(database));
  await session.connect();
  await expect(runStage(host.client, databaseId, 'catch_up')).rejects.toMatchObject({ code: 'instance_down' });
  blocker.close();
  await until(() => runStage(host.client, databaseId, 'catch_up').then(() => true), waits);
  expect((await session.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await session.end();
  await host.client.cutover(databaseId, upgradeId, claim(1));
  expect(
    await runSql(customer(database), "select current_setting('server_version_num')::int / 10000 as major"),
  ).toEqual([{ major: 18 }]);
});

test('an old instance that cannot start any more keeps an upgrade neither from its end nor from being served', async () => {
  const databaseId = newDatabaseId();
  const database = await createFilled(host.client, databaseId);
  await prepareMove(host.client, databaseId);
  await host.client.cutover(databaseId, upgradeId, claim(1));
  const { port } = findInstance(host, databaseId, 'old');
  await killHost(host);
  await occupy(port);
  host = await spawnHost(host.folder);
  expect(await codeOf(runSql(customer(database), 'create table more ()'))).toBe('done');
  await runStage(host.client, databaseId, 'finish');
  await host.client.restOld(databaseId, upgradeId, claim(1));
  await host.client.retireOld(databaseId, upgradeId, claim(1));
  expect((await host.client.readDatabase(databaseId)).upgrade).toBeNull();
  expect(await codeOf(runSql(customer(database), 'create table still_more ()'))).toBe('done');
});

test('a deleted database whose port was taken does not come back when the port is free', async () => {
  const [deletedId, otherId] = [newDatabaseId(), newDatabaseId()];
  const deleted = await createDatabase(host.client, deletedId, 17);
  const other = await createDatabase(host.client, otherId, 17);
  const folder = path.join(host.folder.databasesDir, 'live', deletedId);
  await killHost(host);
  const blockers = [await occupy(deleted.port), await occupy(other.port)];
  host = await spawnHost(host.folder);
  await host.client.destroyDatabase(deletedId, claim(2));
  expect(existsSync(folder)).toBe(false);
  for (const blocker of blockers) blocker.close();
  // The agent tries both databases again at the same time. Once the other is served, the deleted one would be back too.
  await until(() => runSql(customer(other), 'select 1').then(() => true), waits);
  expect(existsSync(folder)).toBe(false);
  await expect(runSql(customer(deleted), 'select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
