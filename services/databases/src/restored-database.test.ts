/**
 * Puts the service's own database back to a moment during an upgrade and a restore.
 *
 * @tier long
 * @processes
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import { succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { putBack, takeMoment } from '@drydock/service/testing/older-database';
import { callerOf } from '@drydock/service/testing/service-api';
import { fenceViolations } from '@drydock/testing/ledger';
import { crashBackends } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import { type DatabasesWorld, type Made, majorOf, makeDatabase, openWorld, query } from '../test/databases-world';

const { seed, count } = sampleOf('older databases of managed databases', { inCi: 1, inChaos: 50 });

interface Work {
  kind: 'upgrade' | 'restore';
  made: Made;
  workflowId: string;
}

describe('a database that was put back from a backup', () => {
  let world: DatabasesWorld;
  let restored: Made;
  let backupId: string;

  const hire = (): void => {
    for (let number = 0; number < 2; number += 1) world.spawnWorker();
  };
  /** Takes a backup. Before that, the records of earlier backups become a day older. */
  const backUp = async ({ id }: Made): Promise<string> => {
    await world.api.rows(
      "UPDATE database_backups SET created_at = created_at - interval '1 day' WHERE database_id = $1",
      [id],
    );
    return (await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${id}/backups`, { body: {} })).id;
  };

  beforeAll(async () => {
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
    hire();
    restored = await makeDatabase(world);
    backupId = await backUp(restored);
  });
  afterAll(() => world.close());

  const begin = async (kind: Work['kind'], made: Made, target: string, body: object): Promise<Work> => {
    const answer = await world.api.call('POST', target, { body });
    if (answer.status !== 202) throw new Error(`${target} answered ${answer.text}`);
    return { kind, made, workflowId: workflowIdOf(answer) };
  };
  const beginUpgrade = ({ id, url }: Made, version: string): Promise<Work> =>
    begin('upgrade', { id, url }, `/v1/databases/${id}/upgrade`, { engine_version: version });
  const stepsDone = async ({ workflowId }: Work): Promise<number> =>
    (await world.api.rows("SELECT FROM workflow_step WHERE workflow_id = $1 AND status = 'succeeded'", [workflowId]))
      .length;
  const isIdle = async ({ made, workflowId }: Work): Promise<boolean> => {
    const values = [workflowId, made.id];
    const text = "SELECT FROM workflow WHERE (id = $1 OR subject_id = $2) AND status IN ('queued', 'running')";
    return (await world.api.rows(text, values)).length === 0;
  };
  const over = (works: readonly Work[]): Promise<boolean> =>
    until(async () => (await Promise.all(works.map(isIdle))).every((yes) => yes), {
      timeoutMs: 180_000,
      what: 'the end of all works',
    });
  const textsOf = async ({ url }: Made): Promise<string[]> =>
    (await query<{ text: string }>(url, 'SELECT text FROM notes ORDER BY id')).map(({ text }) => text);

  /**
   * Expects that the managed database serves the recorded version and accepts writes and DDL. Rows that were written
   * after the moment to which the service's database was put back must still be there, unless a later upgrade ran.
   */
  const judge = async (
    { kind, made, workflowId }: Work,
    { isSince, isLater }: { isSince: boolean; isLater: boolean },
  ): Promise<string> => {
    const [row] = await world.api.rows<{ status: string; error: string | null; internal: string | null }>(
      "SELECT status, error ->> 'code' AS error, error_internal AS internal FROM workflow WHERE id = $1",
      [workflowId],
    );
    const told = `${kind} ${row?.status}${row?.error == null ? '' : ` ${row.error}`}`;
    if (row?.status !== 'succeeded' && !isLater) throw new Error(`${told}: ${row?.internal}`);
    const ready = async (): Promise<boolean> => {
      const [record] = await world.api.rows<{ status: string; version: string }>(
        'SELECT status::text AS status, engine_version AS version FROM managed_databases WHERE id = $1',
        [made.id],
      );
      const { upgrade } = await world.host.client.readDatabase(made.id);
      const found = `${record?.status} ${record?.version} ${upgrade?.phase ?? 'finished'}`;
      const wanted = `available ${await majorOf(made.url)} finished`;
      if (found !== wanted) throw new Error(`${told}: ${found}, not ${wanted}`);
      return true;
    };
    await until(ready, { timeoutMs: 60_000, everyMs: 200, what: `the rest of ${told}` });
    const texts = await textsOf(made);
    if (isSince && !isLater && !texts.includes('since'))
      throw new Error(`${told}: what was written since is lost (${texts.join()})`);
    await query(made.url, 'CREATE TABLE IF NOT EXISTS more (); DROP TABLE more');
    await query(made.url, "INSERT INTO notes (text) VALUES ('writable')");
    await backUp(made);
    return told;
  };

  it(
    `ends all of its unfinished work without staff, and leaves each database open and as its record says, ${count} times`,
    async () => {
      const random = new SeededRandom(seed);
      const ends = new Map<string, number>();
      for (let round = 0; round < count; round += 1) {
        const fresh = await makeDatabase(world, `Upgraded ${round}`);
        await backUp(fresh);
        await query(restored.url, "UPDATE notes SET text = 'later'");
        const works = [
          await beginUpgrade(fresh, '17'),
          await begin('restore', restored, `/v1/databases/${restored.id}/backups/${backupId}/restore`, {}),
        ];
        const shown = random.pick(works);
        const reached = random.below(shown.kind === 'upgrade' ? 12 : 8);
        await until(async () => (await stepsDone(shown)) >= reached || isIdle(shown), {
          timeoutMs: 120_000,
          everyMs: 5,
          what: 'the moment',
        });
        await sleep(random.below(300));
        const moment = await takeMoment(world.api.postgres.adminUrl);
        const wayOn = random.pick(['at once', 'soon', 'over', 'over', 'later work', 'later work over'] as const);
        if (wayOn === 'soon') await sleep(random.below(5_000));
        const isOver = wayOn.includes('over') || wayOn.includes('later');
        if (isOver) {
          await over(works);
          for (const { made } of works) await query(made.url, "INSERT INTO notes (text) VALUES ('since')");
        }
        const isLater = wayOn.includes('later');
        if (isLater) {
          // Once the service's database is put back, it has no record of this upgrade.
          const later = [await beginUpgrade(fresh, '18')];
          if (wayOn === 'later work') await sleep(random.below(6_000));
          else await over(later);
        }
        await world.endWorkers();
        const movesOf = ({ made }: Work): Promise<readonly string[]> =>
          world.host.client.readDatabase(made.id).then(({ switched }) => switched);
        const movesBefore = await Promise.all(works.map(movesOf));
        await putBack(world.api.postgres.adminUrl, moment);
        await world.expireLeases();
        hire();
        await over(works);
        for (const work of works) {
          const end = await judge(work, { isSince: isOver, isLater: isLater && work.made.id === fresh.id }).catch(
            (error: unknown) => {
              throw new Error(`round ${round} of seed ${seed}, put back at ${shown.kind} ${reached}, after ${wayOn}`, {
                cause: error,
              });
            },
          );
          ends.set(end, (ends.get(end) ?? 0) + 1);
        }
        expect(
          await world.api.rows("SELECT kind, error_internal FROM workflow WHERE status = 'needs_attention'"),
        ).toEqual([]);
        // No upgrade or restore switches a database a second time.
        if (isOver && wayOn !== 'later work') expect(await Promise.all(works.map(movesOf))).toEqual(movesBefore);
        await succeed(world, 'DELETE', `/v1/databases/${fresh.id}`);
      }
      expect(fenceViolations(world.host.ledger())).toEqual([]);
      process.stderr.write(`${[...ends].map(([end, times]) => `${times} × ${end}`).join(', ')}\n`);
    },
    60_000 + count * 180_000,
  );
});
