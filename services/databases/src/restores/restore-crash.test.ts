/**
 * Kills a worker in each step of a restore, and of a creation from a backup.
 *
 * @tier long
 * @processes
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseBackup } from '@drydock/contracts/databases/database-backups';
import type { CreatedDatabase, ManagedDatabase } from '@drydock/contracts/databases/databases';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture, CrashLook } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { lookAt } from '@drydock/workflow/testing/workflow-record';
import { type DatabasesWorld, type Made, makeDatabase, openWorld, query } from '../../test/databases-world';
import { workflows } from '../workflows';

interface Run {
  workflowId: string;
  databaseId: string;
  url: string;
}

describe('a restore survives the crash of every step', () => {
  let world: DatabasesWorld;
  beforeAll(async () => {
    world = await openWorld(crashBackends()[0] ?? 'postgres', callerOf());
  });
  afterAll(() => world.close());

  const backedUp = (): Promise<{ made: Made; backupId: string }> =>
    world.withWorker(async () => {
      const made = await makeDatabase(world);
      const { id: backupId } = await succeed<DatabaseBackup>(world, 'POST', `/v1/databases/${made.id}/backups`, {
        body: {},
      });
      return { made, backupId };
    });
  const look = ({ workflowId, databaseId }: Run): Promise<CrashLook> =>
    lookAt(world.api, `/v1/databases/${databaseId}/workflows/${workflowId}`);
  const read = async (databaseId: string) =>
    (await world.api.call('GET', `/v1/databases/${databaseId}`)).json as ManagedDatabase;
  /** Runs a workflow's crash cases. In the usual long run, these are only the cases that match `onlyInCi`. */
  const crash = async (
    kind: string,
    onlyInCi: RegExp,
    fixture: Pick<CrashFixture<Run>, 'start' | 'judge'>,
  ): Promise<void> => {
    const whole = { runSecondsMax: 60, look, ledger: async () => world.host.ledger(), ...fixture };
    const { cases } = await crashEveryStepInWorld(
      world,
      definitionOf(workflows, kind),
      whole,
      crashScope({ onlyInCi }),
    );
    expect(cases.length).toBeGreaterThan(0);
  };

  it(
    'restore_database',
    () =>
      crash('restore_database', /^kill at /, {
        start: async () => {
          const { made, backupId } = await backedUp();
          await query(made.url, "UPDATE notes SET text = 'later'");
          const answer = await world.api.call('POST', `/v1/databases/${made.id}/backups/${backupId}/restore`, {
            body: {},
          });
          return { databaseId: made.id, url: made.url, workflowId: workflowIdOf(answer) };
        },
        judge: async ({ databaseId, url }) => {
          const texts = (await query<{ text: string }>(url, 'SELECT text FROM notes ORDER BY id'))
            .map(({ text }) => text)
            .join(' ');
          await query(url, "INSERT INTO notes (text) VALUES ('writable'); CREATE TABLE more ()");
          const [copy] = await world.api.rows<{ status: string; storage_key: string | null }>(
            "SELECT status, storage_key FROM database_backups WHERE database_id = $1 AND kind = 'pre_restore'",
            [databaseId],
          );
          const isKept =
            copy?.storage_key != null && existsSync(path.join(world.backupsDir, copy.storage_key, 'manifest'));
          const { upgrade } = await world.host.client.readDatabase(databaseId);
          const found = `${(await read(databaseId)).status}, ${texts}, copy ${copy?.status} ${isKept}, ${upgrade?.phase}`;
          if (found === 'available, one two three, copy completed true, finished') return 'new';
          if (found === 'available, later later later, copy undefined false, undefined') return 'old';
          throw new Error(found);
        },
      }),
    crashLimitMs,
  );

  it(
    'create_database_from_backup',
    async () => {
      const { backupId } = await backedUp();
      await crash('create_database_from_backup', /^kill at /, {
        start: async () => {
          const body = {
            label: 'Copy',
            engine: 'postgres',
            engine_version: '16',
            size: 'small',
            from: { backup_id: backupId },
          };
          const answer = await world.api.call('POST', '/v1/databases', { body });
          const { id: databaseId, password } = answer.json as CreatedDatabase;
          return { databaseId, url: password, workflowId: workflowIdOf(answer) };
        },
        judge: async ({ databaseId, url: password }) => {
          const { status, host, port, username, database_name } = await read(databaseId);
          const served = await world.host.client.readDatabase(databaseId).catch(() => null);
          if (status === 'failed' && served === null) return 'old';
          if (status !== 'available' || served === null || served.upgrade !== null)
            throw new Error(`${status} ${served?.upgrade?.phase}`);
          const rows = await query(
            `postgresql://${username}:${password}@${host}:${port}/${database_name}`,
            'SELECT 1 FROM notes',
          );
          if (rows.length !== 3) throw new Error(`${rows.length} rows`);
          return 'new';
        },
      });
    },
    crashLimitMs,
  );
});
