/**
 * Two hundred rollbacks.
 *
 * @tier long
 * @processes
 */
import { callerOf } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { type ComputeWorld, type Disk, makeDisk, openWorld, rollBack } from '../test/compute-world';

const [organisations, rollbacksEach] = [10, 20];
const minutesMax = 10;
/** Emulator seconds to one of ours. */
const clockScale = 4;

let world: ComputeWorld;
beforeAll(async () => {
  // A send is given up, and never repeated, when it takes longer than an answer may be lost for: on a busy machine a worker's first one takes some seconds.
  world = await openWorld('postgres', callerOf(), { clockScale, target: { deadline_ms: 10_000, lost_answer_seconds: 30 } });
  // A lease as it is deployed, since two busy cores lose one of a second; and one workflow at a time each, so that there is something to share.
  const environment = { WORKFLOW_LEASE_SECONDS: '15', WORKFLOW_CONCURRENCY: '1' };
  world.spawnWorker(environment);
  world.spawnWorker(environment);
});
afterAll(() => world.close());

const emulatorNow = async (): Promise<number> => Date.parse(((await world.project.admin('GET', '/clock')) as { now: string }).now);

it('200 rollbacks of ten organisations finish on two workers within the provider’s limit, and none waits four times as long as another', async () => {
  const crowd = Array.from({ length: organisations }, () => callerOf());
  const disks: { disk: Disk; caller: (typeof crowd)[number] }[] = [];
  for (const caller of crowd)
    for (let number = 0; number < rollbacksEach; number += 1) disks.push({ caller, disk: await makeDisk(world, {}, caller) });
  // What it took to make the machines does not count.
  await world.project.admin('PUT', '/rate-limit', { perHour: 3_600 });
  const callsBefore = (await world.project.calls()).length;
  const beganAt = await emulatorNow();
  // One organisation after the other, so that the first would be served first if nobody saw to it.
  for (let index = 0; index < disks.length; index += 10) {
    const answers = await Promise.all(disks.slice(index, index + 10).map(({ disk, caller }) => rollBack(world, disk, { caller })));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  }
  const open = "SELECT 1 FROM workflow WHERE kind = 'roll_back_server' AND status NOT IN ('succeeded', 'failed') LIMIT 1";
  await until(async () => (await world.api.rows(open)).length === 0, {
    timeoutMs: (minutesMax * 60_000) / clockScale,
    everyMs: 500,
    what: 'the end of all',
  });
  expect(await world.api.rows("SELECT error, error_internal FROM workflow WHERE status = 'failed'")).toEqual([]);
  expect((await emulatorNow()) - beganAt).toBeLessThanOrEqual(minutesMax * 60_000);
  const rebuilds = (await world.project.ledger('rebuild_server')).map(({ resource }) => resource);
  expect(rebuilds.sort()).toEqual(disks.map(({ disk }) => disk.machineId).sort());
  expect(await Promise.all(disks.map(({ disk }) => world.project.readDisk(disk.machineId)))).toEqual(disks.map(() => 'new'));
  const { peakPerHour } = (await world.project.admin('GET', '/rate-limit/live')) as { peakPerHour: number };
  expect(peakPerHour).toBeLessThanOrEqual(3_600);
  expect((await world.project.calls()).slice(callsBefore).filter(({ status }) => status === 429)).toEqual([]);
  const waits = await world.api.rows<{ seconds: number }>(
    `SELECT max(extract(epoch FROM finished_at - created_at))::float8 AS seconds FROM workflow WHERE kind = 'roll_back_server' GROUP BY org_id`,
  );
  const seconds = waits.map((wait) => wait.seconds);
  // One organisation after the other, the last would wait about eight times as long as the first. In turns it is less than twice on a quiet machine.
  expect(Math.max(...seconds)).toBeLessThanOrEqual(4 * Math.min(...seconds));
}, 300_000);
