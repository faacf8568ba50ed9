/**
 * Runs two hundred rollbacks.
 *
 * @tier long
 * @processes
 */
import { callerOf } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { type ComputeWorld, type Disk, makeDisk, openWorld, rollBack } from '../test/compute-world';

const [organisations, rollbacksEach] = [10, 20];
/** Seconds of the emulator's time in each real second. */
const clockScale = 4;
/** The provider's hourly limit of calls. */
const callsMax = 3_600;

let world: ComputeWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf(), { clockScale, target: { lost_answer_seconds: 120 } });
});
afterAll(() => world.close());

it('two workers finish 200 rollbacks of ten organisations within the provider’s limit, and serve the organisations in turn', async () => {
  const crowd = Array.from({ length: organisations }, () => callerOf());
  const disks: { disk: Disk; caller: (typeof crowd)[number] }[] = [];
  for (const caller of crowd)
    for (let number = 0; number < rollbacksEach; number += 1)
      disks.push({ caller, disk: await makeDisk(world, {}, caller) });
  // The new limit starts a new count, so calls that created the machines do not count.
  await world.project.admin('PUT', '/rate-limit', { perHour: callsMax });
  // All work is accepted before a worker starts, organisation by organisation. Without fairness the first organisation
  // would be served first.
  for (let index = 0; index < disks.length; index += 10) {
    const answers = await Promise.all(
      disks.slice(index, index + 10).map(({ disk, caller }) => rollBack(world, disk, { caller })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  }
  const callsBefore = (await world.project.calls()).length;
  for (let number = 0; number < 2; number += 1) world.spawnWorker();
  const open =
    "SELECT 1 FROM workflow WHERE kind = 'roll_back_server' AND status NOT IN ('succeeded', 'failed') LIMIT 1";
  await until(async () => (await world.api.rows(open)).length === 0, {
    timeoutMs: 900_000,
    everyMs: 500,
    what: 'the end of all',
  });
  expect(await world.api.rows("SELECT error, error_internal FROM workflow WHERE status = 'failed'")).toEqual([]);

  const rebuilds = (await world.project.ledger('rebuild_server')).map(({ resource }) => resource);
  expect(rebuilds.toSorted()).toEqual(disks.map(({ disk }) => disk.machineId).sort());
  expect(await Promise.all(disks.map(({ disk }) => world.project.readDisk(disk.machineId)))).toEqual(
    disks.map(() => 'new'),
  );
  const { peakPerHour } = (await world.project.admin('GET', '/rate-limit/live')) as { peakPerHour: number };
  expect(peakPerHour).toBeLessThanOrEqual(callsMax);
  const calls = (await world.project.calls()).slice(callsBefore);
  expect(calls.filter(({ status }) => status === 429)).toEqual([]);
  expect(calls.length).toBeLessThanOrEqual(callsMax);

  // The positions of each organisation's first and last rollback in the provider's ledger. Without fairness the last
  // organisation would begin after all others had ended.
  const placesOf = crowd.map((caller) => {
    const own = disks.filter((one) => one.caller === caller).map(({ disk }) => rebuilds.indexOf(disk.machineId));
    return { first: Math.min(...own), last: Math.max(...own) };
  });
  expect(Math.max(...placesOf.map(({ first }) => first))).toBeLessThan(Math.min(...placesOf.map(({ last }) => last)));
}, 1_200_000);
