/**
 * Restores databases from a backup that was taken during work.
 *
 * @tier long
 * @processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { persist, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { putBack, takeMoment } from '@drydock/service/testing/older-database';
import { callerOf } from '@drydock/service/testing/service-api';
import { crashBackends } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import { workflowOf } from '@drydock/workflow/testing/workflow-record';
import { type ComputeWorld, type Disk, makeDisk, openWorld, rollBack } from '../test/compute-world';

const { seed, count } = sampleOf('older databases of compute', { inCi: 2, inChaos: 50 });

const kinds = ['rollback', 'rebuild', 'take', 'delete', 'reboot', 'removal'] as const;

interface Work extends Disk {
  kind: (typeof kinds)[number];
  workflowId: string;
}

describe('a database that was put back from a backup', () => {
  let world: ComputeWorld;

  const hire = (): void => {
    for (let number = 0; number < 2; number += 1) world.spawnWorker();
  };
  beforeAll(async () => {
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
    hire();
  });
  afterAll(() => world.close());

  const rebuild = ({ serverId }: Disk) =>
    world.api.call('POST', `/v1/compute/servers/${serverId}/rebuild`, { body: { image: 'debian-12' } });

  /** Starts the work, and resolves when it is accepted. Requests that wait for the end of the work are not awaited. */
  const begin = async (kind: Work['kind']): Promise<Work> => {
    const disk = await makeDisk(world);
    const snapshots = `/v1/compute/servers/${disk.serverId}/snapshots`;
    if (kind === 'rollback')
      return { kind, ...disk, workflowId: workflowIdOf(await persist(() => rollBack(world, disk))) };
    if (kind === 'rebuild') return { kind, ...disk, workflowId: workflowIdOf(await persist(() => rebuild(disk))) };
    const path = `/v1/compute/servers/${disk.serverId}`;
    if (kind === 'removal')
      return { kind, ...disk, workflowId: workflowIdOf(await persist(() => world.api.call('DELETE', path))) };
    if (kind === 'reboot') {
      const asked = await persist(() => world.api.call('POST', `${path}/reboot`, { body: { force: true } }));
      return { kind, ...disk, workflowId: workflowIdOf(asked) };
    }
    const asked = persist(() =>
      kind === 'take'
        ? world.api.call('POST', snapshots, { body: { description: 'mine' } })
        : world.api.call('DELETE', `${snapshots}/${disk.snapshotId}`),
    );
    asked.catch(() => undefined);
    return { kind, ...disk, workflowId: await workflowOf(world.api, disk.serverId) };
  };
  const stepsDone = async ({ workflowId }: Work): Promise<number> =>
    (await world.api.rows("SELECT FROM workflow_step WHERE workflow_id = $1 AND status = 'succeeded'", [workflowId]))
      .length;
  const isIdle = async ({ serverId }: Work): Promise<boolean> =>
    (await world.api.rows("SELECT FROM workflow WHERE subject_id = $1 AND status IN ('queued', 'running')", [serverId]))
      .length === 0;
  const over = (works: readonly Work[]): Promise<boolean> =>
    until(async () => (await Promise.all(works.map(isIdle))).every((yes) => yes), {
      timeoutMs: 60_000,
      what: 'the end of all works',
    });

  /**
   * Resolves with the outcome of the work. Throws if the provider got the calls of the work too often or too rarely.
   * `overwrites` is the number of later rebuilds that the restored database does not know.
   */
  const assess = async ({ kind, workflowId, serverId, machineId }: Work, overwrites: number): Promise<string> => {
    const [row] = await world.api.rows<{
      status: string;
      code: string | null;
      internal: string | null;
      operable: boolean;
    }>(
      `SELECT workflow.status, error ->> 'code' AS code, error_internal AS internal, operable FROM workflow, servers WHERE workflow.id = $1 AND servers.id = $2`,
      [workflowId, serverId],
    );
    const told = `${kind} ${row?.status} ${row?.code ?? ''}`;
    const times = async (op: string): Promise<number> =>
      (await world.project.ledger(op)).filter(({ resource }) => resource === machineId).length;
    if (kind === 'reboot' || kind === 'removal') {
      const count = await times(kind === 'reboot' ? 'reset_server' : 'delete_server');
      const machines = (await world.project.machinesNamed(serverId)).length;
      const isDone = row?.status === 'succeeded' && count === 1 && machines === (kind === 'reboot' ? 1 : 0);
      const isUnsent = row?.code === 'provider_not_accepted' && count === 0 && machines === 1;
      if (!isDone && !isUnsent)
        throw new Error(`${told}: sent ${count} times, ${machines} machines ${row?.internal ?? ''}`);
      return told;
    }
    // The workflow of `delete` is cancelled if no worker claims it within ten seconds. The restored record may then say
    // `start_by_passed` although the provider has done the work. This record is acceptable, because customers see the
    // provider's list of snapshots.
    const isLate = kind === 'delete' && row?.code === 'start_by_passed';
    const sent = await times('rebuild_server');
    const found = {
      status: isLate ? 'succeeded' : row?.status,
      operable: row?.operable,
      sent,
      snapshots: (await world.project.snapshotsOf(machineId)).length,
    };
    const wanted = { rollback: [1, 1], rebuild: [1, 1], take: [0, 2], delete: [0, 0] }[kind];
    const expected = { status: 'succeeded', operable: true, sent: (wanted[0] ?? 0) + overwrites, snapshots: wanted[1] };
    // `unsent` is the outcome if the worker was killed between recording the call and sending it. The provider did not
    // get the call, so the workflow fails and does not send the call again.
    const unsent = { status: 'failed', operable: true, sent: overwrites, snapshots: 1 };
    if (row?.code === 'provider_not_accepted' && JSON.stringify(found) === JSON.stringify(unsent)) return told;
    if (JSON.stringify(found) !== JSON.stringify(expected))
      throw new Error(`${told}: ${JSON.stringify(found)} ${row?.internal ?? ''}`);
    if (kind === 'rollback' && overwrites === 0 && (await world.project.readDisk(machineId)) !== 'new')
      throw new Error(`${told}: another disk`);
    return told;
  };

  it(
    `finishes all unfinished work as the provider's records show it, and sends nothing twice, ${count} times`,
    async () => {
      const random = new SeededRandom(seed);
      const ends = new Map<string, number>();
      for (let round = 0; round < count; round += 1) {
        const works = await Promise.all(kinds.map(begin));
        const shown = random.pick(works);
        const reached = random.below(5);
        await until(async () => (await stepsDone(shown)) >= reached || isIdle(shown), {
          everyMs: 5,
          what: 'the moment',
        });
        await sleep(random.below(100));
        const moment = await takeMoment(world.api.postgres.adminUrl);
        const wayOn = random.pick(['at once', 'soon', 'later work', 'over', 'over'] as const);
        if (wayOn === 'soon') await sleep(random.below(2_000));
        if (wayOn === 'over' || wayOn === 'later work') await over(works);
        const later = wayOn === 'later work' ? works.find(({ kind }) => kind === 'rollback') : undefined;
        if (later !== undefined) {
          expect((await rebuild(later)).status).toBe(202);
          await over([later]);
        }
        await world.endWorkers();
        await putBack(world.api.postgres.adminUrl, moment);
        await world.expireLeases();
        hire();
        await over(works);
        for (const work of works) {
          const end = await assess(work, work === later ? 1 : 0).catch((error: unknown) => {
            throw new Error(
              `round ${round} of seed ${seed}, put back at ${shown.kind} ${reached}, after ${wayOn}: ${String(error)}`,
            );
          });
          ends.set(end, (ends.get(end) ?? 0) + 1);
        }
        expect(
          await world.api.rows("SELECT kind, error_internal FROM workflow WHERE status = 'needs_attention'"),
        ).toEqual([]);
      }
      process.stderr.write(`${[...ends].map(([end, times]) => `${times} × ${end}`).join(', ')}\n`);
    },
    60_000 + count * 60_000,
  );
});
