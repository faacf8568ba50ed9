/**
 * Kills a worker in each step of each workflow, except those of restore-crash.test.ts.
 *
 * @tier long
 * @processes
 */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture, CrashLook } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { describeWith } from '@drydock/testing/skipped';
import { awaitedWorkflowOf, lookAt, workflowOf } from '@drydock/workflow/testing/workflow-record';
import { type DatabasesWorld, majorOf, makeDatabase, openWorld, query } from '../test/databases-world';
import { mariadbVersions } from '../test/mysql-client';
import { workflows } from './workflows';

interface Version {
  engine: string;
  engine_version: string;
}

interface Run {
  workflowId: string;
  databaseId: string;
  url: string;
}

const isFailure = /^throw /;
/**
 * The crash cases to run, by kind of workflow. A kind that is not listed has the usual cases. In a `throw` case the
 * workflow fails or waits for staff. The first five kinds are listed without these cases: they have no undo, so a
 * failed run leaves its effect. An upgrade takes long, so only the chaos run has all of its cases.
 */
const scopes: Record<string, ReturnType<typeof crashScope>> = {
  delete_database: crashScope({ never: isFailure }),
  delete_database_backup: crashScope({ never: isFailure }),
  verify_database_restore: crashScope({ never: isFailure }),
  retire_old_instance: crashScope({ never: isFailure }),
  end_abandoned_upgrade: crashScope({ never: isFailure }),
  upgrade_database: crashScope({ onlyInCi: /^kill at |^throw at .*\.catch_up\.after_effect$/ }),
};

describe('every step survives its crash', () => {
  let world: DatabasesWorld;
  beforeAll(async () => {
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
  });
  afterAll(() => world.close());

  const accept = async (databaseId: string, url: string, method: string, rest: string, body?: object): Promise<Run> => {
    const answer = await world.api.call(method, `/v1/databases/${databaseId}${rest}`, { body });
    if (answer.status !== 202) throw new Error(answer.text);
    return { databaseId, url, workflowId: workflowIdOf(answer) };
  };
  /** Makes the schedule due, and waits until the relay has started its workflow. */
  const startScheduled = async (databaseId: string, url: string, kind: string): Promise<Run> => {
    await world.api.rows('UPDATE workflow_schedule SET next_run_at = now() WHERE subject_id = $1 AND kind = $2', [
      databaseId,
      kind,
    ]);
    return { databaseId, url, workflowId: await workflowOf(world.api, databaseId, kind) };
  };
  const backedUp = (version?: Version) =>
    world.withWorker(async () => {
      const made = await makeDatabase(world, 'Shop', world.caller, version);
      await succeed(world, 'POST', `/v1/databases/${made.id}/backups`, { body: {} });
      return made;
    });
  const look = ({ workflowId, databaseId }: Run): Promise<CrashLook> =>
    lookAt(world.api, `/v1/databases/${databaseId}/workflows/${workflowId}`);
  const crash = async (kind: string, fixture: Pick<CrashFixture<Run>, 'start' | 'judge'>): Promise<void> => {
    const definition = definitionOf(workflows, kind);
    const whole = { runSecondsMax: 60, look, ledger: async () => world.host.ledger(), ...fixture };
    const { cases } = await crashEveryStepInWorld(world, definition, whole, scopes[kind] ?? crashScope());
    expect(cases.length).toBeGreaterThan(0);
  };
  const recordOf = async (databaseId: string) => {
    const [row] = await world.api.rows<{ status: string; engine_version: string; restore_verified_at: Date | null }>(
      'SELECT status, engine_version, restore_verified_at FROM managed_databases WHERE id = $1',
      [databaseId],
    );
    return row ?? { status: 'none', engine_version: '', restore_verified_at: null };
  };
  const isServed = (databaseId: string): Promise<boolean> =>
    world.host.client.readDatabase(databaseId).then(
      () => true,
      () => false,
    );
  const rowsOf = async (url: string): Promise<number> => (await query(url, 'SELECT 1 FROM notes')).length;

  it(
    'create_database',
    () =>
      crash('create_database', {
        start: async () => {
          const body = { label: 'Shop', engine: 'postgres', engine_version: '16', size: 'small' };
          const answer = await world.api.call('POST', '/v1/databases', { body });
          const { id: databaseId } = answer.json as { id: string };
          return { databaseId, url: '', workflowId: workflowIdOf(answer) };
        },
        judge: async ({ databaseId }) => {
          const found = `${(await recordOf(databaseId)).status} ${await isServed(databaseId)}`;
          if (found === 'available true') return 'new';
          if (found === 'failed false') return 'old';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  it(
    'take_database_backup',
    () =>
      crash('take_database_backup', {
        start: async () => {
          const { id, url } = await world.withWorker(() => makeDatabase(world));
          return accept(id, url, 'POST', '/backups', {});
        },
        judge: async ({ databaseId, url }) => {
          const [backup] = await world.api.rows<{ status: string; storage_key: string | null }>(
            'SELECT status, storage_key FROM database_backups WHERE database_id = $1',
            [databaseId],
          );
          const folder = path.join(world.backupsDir, 'live', databaseId);
          if ((await rowsOf(url)) !== 3) throw new Error('rows were lost');
          if (
            backup?.status === 'completed' &&
            readdirSync(path.join(world.backupsDir, backup.storage_key ?? '')).includes('manifest')
          )
            return 'new';
          if (backup?.status === 'failed' && (!existsSync(folder) || readdirSync(folder).length === 0)) return 'old';
          throw new Error(`${backup?.status}`);
        },
      }),
    crashLimitMs,
  );

  it(
    'verify_database_restore',
    () =>
      crash('verify_database_restore', {
        start: async () => {
          const { id, url } = await backedUp();
          return startScheduled(id, url, 'verify_database_restore');
        },
        judge: async ({ databaseId, url }) => {
          if ((await rowsOf(url)) !== 3) throw new Error('rows were lost');
          return (await recordOf(databaseId)).restore_verified_at === null ? 'old' : 'new';
        },
      }),
    crashLimitMs,
  );

  it(
    'delete_database_backup',
    () =>
      crash('delete_database_backup', {
        start: async () => {
          const { id, url } = await backedUp();
          const [backup] = await world.api.rows<{ id: string }>(
            'SELECT id FROM database_backups WHERE database_id = $1',
            [id],
          );
          return accept(id, url, 'DELETE', `/backups/${backup?.id}`);
        },
        judge: async ({ databaseId, url }) => {
          const left = readdirSync(path.join(world.backupsDir, 'live', databaseId));
          const found = `${await rowsOf(url)} ${left.length}`;
          if (found === '3 0') return 'new';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  it(
    'delete_database',
    () =>
      crash('delete_database', {
        start: async () => {
          const { id, url } = await backedUp();
          return accept(id, url, 'DELETE', '');
        },
        judge: async ({ databaseId }) => {
          const left = existsSync(path.join(world.backupsDir, 'live', databaseId));
          const found = `${(await recordOf(databaseId)).status} ${await isServed(databaseId)} ${left}`;
          if (found === 'deleted false false') return 'new';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  /**
   * Checks the outcome of an upgrade. If its workflow waits for staff, the database must serve customers, and a retry
   * by staff must complete the workflow. The record must then have the version that serves.
   */
  const judgeUpgrade =
    (newest: string) =>
    async (run: Run): Promise<'old' | 'new'> => {
      const { databaseId, url } = run;
      const [rows, record] = [await rowsOf(url), await recordOf(databaseId)];
      await query(url, "INSERT INTO notes (text) VALUES ('writable')");
      const waitsForStaff = (await look(run)).status === 'needs_attention';
      const isServing = !waitsForStaff || record.engine_version === newest;
      if (rows !== 3 || record.status !== (isServing ? 'available' : 'provisioning'))
        throw new Error(`${rows} rows, on record ${record.status}`);
      if (waitsForStaff) await succeed(world, 'POST', `/v1/databases/${databaseId}/workflows/${run.workflowId}/retry`);
      const [served, { engine_version: recorded }] = [await majorOf(url), await recordOf(databaseId)];
      if (recorded !== served) throw new Error(`${served}, on record ${recorded}`);
      // The database is deleted, because otherwise its servers would run during all later cases.
      await succeed(world, 'DELETE', `/v1/databases/${databaseId}`);
      return served === newest ? 'new' : 'old';
    };
  const startUpgrade = (newest: string, from?: Version) => async (): Promise<Run> => {
    const { id, url } = await backedUp(from);
    return accept(id, url, 'POST', '/upgrade', { engine_version: newest });
  };

  it(
    'upgrade_database',
    () => crash('upgrade_database', { start: startUpgrade('18'), judge: judgeUpgrade('18') }),
    crashLimitMs,
  );

  const [older, newer] = ['10.5', '11.8'];
  const missing = [older, newer]
    .filter((version) => !mariadbVersions.includes(version))
    .map((version) => `mariadb@${version}`);
  describeWith(missing.length === 0 ? '' : `npm run engines -- ${missing.join(' ')}`)('MariaDB', () => {
    const start = startUpgrade(newer, { engine: 'mysql', engine_version: older });
    it('upgrade_database', () => crash('upgrade_database', { start, judge: judgeUpgrade(newer) }), crashLimitMs);
  });

  /** Creates the state after an offline upgrade that was abandoned during its copy. */
  const blockedByUpgrade = async (upgradeId: string) => {
    const made = await world.withWorker(() => makeDatabase(world));
    const [row] = await world.api.rows<{ fence: string }>("SELECT nextval('workflow_fence')::text AS fence");
    const claim = { fence: row?.fence ?? '', workflowId: upgradeId };
    await world.host.client.prepareTarget(made.id, { upgrade_id: upgradeId, to_major: 18, path: 'offline' }, claim);
    await world.host.client.blockWrites(made.id, upgradeId, claim);
    await world.api.rows("UPDATE managed_databases SET status = 'provisioning' WHERE id = $1", [made.id]);
    return made;
  };

  it(
    'end_abandoned_upgrade',
    () =>
      crash('end_abandoned_upgrade', {
        start: async () => {
          const { id, url } = await blockedByUpgrade('given-up');
          await world.api.rows(
            `INSERT INTO workflow_schedule (name, kind, resource_key, subject_type, subject_id, org_id, mode, input, interval_seconds, next_run_at)
             SELECT 'end:' || $1, 'end_abandoned_upgrade', resource_key, subject_type, subject_id, org_id, mode, '{"upgradeId":"given-up"}', 3600, now()
             FROM workflow_schedule WHERE subject_id = $1 AND kind = 'verify_database_restore'`,
            [id],
          );
          return startScheduled(id, url, 'end_abandoned_upgrade');
        },
        judge: async ({ databaseId, url }) => {
          const [major, { status, engine_version: version }] = [await majorOf(url), await recordOf(databaseId)];
          await query(url, "INSERT INTO notes (text) VALUES ('writable')");
          const { upgrade } = await world.host.client.readDatabase(databaseId);
          const found = `${status} ${version} ${major} ${upgrade?.phase ?? 'none'}`;
          if (found === 'available 16 16 none') return 'new';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  it(
    'try_database_backup',
    () =>
      crash('try_database_backup', {
        start: async () => {
          const { id, url } = await backedUp();
          const [backup] = await world.api.rows<{ id: string }>(
            'SELECT id FROM database_backups WHERE database_id = $1',
            [id],
          );
          void world.api.call('POST', `/v1/databases/${id}/backups/${backup?.id}/restore/preflight`, { body: {} });
          return { databaseId: id, url, workflowId: await awaitedWorkflowOf(world.api, id, 'try_database_backup') };
        },
        judge: async ({ databaseId, url }) => {
          if ((await rowsOf(url)) !== 3) throw new Error('the database has changed');
          const [row] = await world.api.rows<{ proof: object | null }>(
            'SELECT proof FROM database_backups WHERE database_id = $1',
            [databaseId],
          );
          return row?.proof == null ? 'old' : 'new';
        },
      }),
    crashLimitMs,
  );

  it(
    'retire_old_instance',
    () =>
      crash('retire_old_instance', {
        start: async () => {
          const { id, url } = await backedUp();
          await world.withWorker(() =>
            succeed(world, 'POST', `/v1/databases/${id}/upgrade`, { body: { engine_version: '17' } }),
          );
          return startScheduled(id, url, 'retire_old_instance');
        },
        judge: async ({ databaseId, url }) => {
          if ((await majorOf(url)) !== '17' || (await rowsOf(url)) !== 3)
            throw new Error('the new instance does not serve');
          const { upgrade } = await world.host.client.readDatabase(databaseId);
          return upgrade === null ? 'new' : 'old';
        },
      }),
    crashLimitMs,
  );
});
