/**
 * Runs the whole service with a database agent. It is the only suite of this service in `npm test` with an agent. The
 * long suites in `upgrades/` and `restores/` cover the other cases.
 *
 * @processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { ManagedDatabase } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { fenceViolations } from '@drydock/testing/ledger';
import { serviceBackends } from '@drydock/testing/scope';
import { type DatabasesWorld, type Made, majorOf, makeDatabase, openWorld, query } from '../test/databases-world';

const tokens = createFaultTokens();
let world: DatabasesWorld;
let isOver = false;
let made: Made;
let backup: DatabaseBackup;
jest.setTimeout(300_000);

/** Starts a worker, and another one whenever it dies. */
function hire(): void {
  world.spawnWorker({ DRYDOCK_FAULTS: tokens.folder }).once('exit', () => {
    if (!isOver) hire();
  });
}
beforeAll(async () => {
  world = await openWorld(serviceBackends()[0] ?? 'postgres', callerOf());
  hire();
  made = await makeDatabase(world);
});
afterAll(async () => {
  isOver = true;
  await world.close();
  tokens.remove();
});

const read = async ({ id }: Made) => (await world.api.call('GET', `/v1/databases/${id}`)).json as ManagedDatabase;
const backUp = ({ id }: Made, caller = world.caller) =>
  succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {}, caller });
const textsOf = async ({ url }: Made) =>
  (await query<{ text: string }>(url, 'SELECT text FROM notes ORDER BY id')).map(({ text }) => text);
const restorePath = ({ id }: Made, { id: backupId }: DatabaseBackup): string =>
  `/v1/databases/${id}/backups/${backupId}/restore`;

it('a 16 moves to 17 behind its address while a client writes and the worker is killed: every acknowledged row is there', async () => {
  backup = await backUp(made);
  const before = await read(made);
  expect(before).toMatchObject({ status: 'available', engine_version: '16' });
  const acknowledged: number[] = [];
  let isWriting = true;
  const writing = (async () => {
    for (let number = 100; isWriting; number += 1) {
      const isIn = await query(made.url, `INSERT INTO notes (id, text) VALUES (${number}, 'while moving')`).then(
        () => true,
        () => false,
      );
      if (isIn) acknowledged.push(number);
      // The pause limits the number of new connections, which would otherwise use a whole core.
      await sleep(50);
    }
  })();
  tokens.arm('upgrade_database.cutover.after_effect', 'kill');
  try {
    await succeed(world, 'POST', `/v1/databases/${made.id}/upgrade`, { body: { engine_version: '17' } });
  } finally {
    isWriting = false;
    await writing;
  }
  // A token is used up when the process dies at the armed point.
  expect(tokens.left()).toEqual([]);
  const { host, port } = before;
  expect(await read(made)).toMatchObject({
    status: 'available',
    engine_version: '17',
    host,
    port,
    restore_verified_at: expect.any(String),
  });
  expect(await majorOf(made.url)).toBe('17');
  const kept = new Set((await query<{ id: number }>(made.url, 'SELECT id FROM notes')).map((row) => row.id));
  expect(acknowledged.length).toBeGreaterThan(0);
  expect([1, 2, 3, ...acknowledged].filter((number) => !kept.has(number))).toEqual([]);
});

it('the backup of the 16 is restored into the 17 although the worker is killed: its rows are back, and what it replaced is a backup', async () => {
  await query(made.url, 'DELETE FROM notes WHERE id > 3');
  await query(made.url, "UPDATE notes SET text = 'broken'; CREATE TABLE later ()");
  const { refusal, findings } = (await world.api.call('POST', `${restorePath(made, backup)}/preflight`, { body: {} }))
    .json as Preflight;
  expect([refusal, findings.map(({ code }) => code)]).toEqual([null, ['backup_proven', 'older_major']]);
  tokens.arm('restore_database.stage.after_effect', 'kill');
  await succeed(world, 'POST', restorePath(made, backup), { body: {} });
  expect(tokens.left()).toEqual([]);
  expect(await textsOf(made)).toEqual(['one', 'two', 'three']);
  expect(await query(made.url, "SELECT to_regclass('later') AS later")).toEqual([{ later: null }]);
  await query(made.url, "INSERT INTO notes (text) VALUES ('four'); CREATE TABLE more ()");
  expect(await read(made)).toMatchObject({ status: 'available', engine_version: '17' });
  const { data } = (await world.api.call('GET', `/v1/databases/${made.id}/backups`)).json as { data: DatabaseBackup[] };
  expect(data[0]).toMatchObject({ kind: 'pre_restore', status: 'completed', engine_version: '17' });
});

it('a restore that fails before its switch leaves the database as it was, and nothing of itself', async () => {
  const caller = { ...world.caller, mode: 'sandbox' as const };
  const tried = await makeDatabase(world, 'fail_restore', caller);
  const point = await backUp(tried, caller);
  await query(tried.url, "UPDATE notes SET text = 'later'");
  const accepted = await world.api.call('POST', restorePath(tried, point), { body: {}, caller });
  const view = await ended(world, accepted.headers['location'], { caller });
  expect(view).toMatchObject({ status: 'failed', error: { code: 'database_restore_failed' } });
  expect(await textsOf(tried)).toEqual(['later', 'later', 'later']);
  await query(tried.url, 'CREATE TABLE more ()');
  expect((await world.host.client.readDatabase(tried.id)).upgrade).toBeNull();
});

it('the host never accepts an older fence after a newer one', () => {
  const entries = world.host.ledger();
  expect(entries.length).toBeGreaterThan(10);
  expect(fenceViolations(entries)).toEqual([]);
});
