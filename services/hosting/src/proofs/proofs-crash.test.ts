/**
 * Kills a worker in each step of the platform's own work.
 *
 * @tier long
 * @processes
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type RunningS3, startS3 } from '@drydock/emulators';
import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import type { CrashFixture } from '@drydock/testing/crash-every-step';
import { crashBackends, crashLimitMs, crashScope } from '@drydock/testing/scope';
import { lookAtRecord } from '@drydock/workflow/testing/workflow-record';
import { givenBackup, givenSite } from '../../test/hosting-api';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { namesIn, startPlatformWork, stopClock } from '../../test/platform-work';
import { fillSite } from '../../test/site-state';
import { checkServingWorkflow } from '../deleted-sites/check-serving.workflow';
import { expireBackupsWorkflow } from '../retention/expire-backups.workflow';
import { sweepBackupsWorkflow } from '../retention/sweep-backups.workflow';
import { workflows } from '../workflows';
import { checkImmutabilityWorkflow } from './check-immutability.workflow';
import { restoreDrillWorkflow } from './restore-drill.workflow';

interface Run {
  workflowId: string;
  /** The id of the site or backup of the run; '' if the run is about all of them. */
  about: string;
}

const scope = crashScope();
const account = { accessKeyId: 'drydock', secretAccessKey: 'a secret of tests', buckets: ['*'] };

describe.each(crashBackends())(
  'work of the platform survives a crash at every step, with the queue on %s',
  (backend) => {
    let world: HostingWorld;
    let s3: RunningS3;
    beforeAll(async () => {
      world = await openWorld(backend, callerOf());
      await stopClock(world.api);
      s3 = await startS3({ accounts: [account], buckets: [{ name: 'locked', hasObjectLock: true }] });
    });
    afterAll(async () => {
      await world.close();
      await s3.close();
    });

    const crash = async (kind: string, fixture: Pick<CrashFixture<Run>, 'start' | 'judge'>): Promise<void> => {
      const definition = definitionOf(workflows, kind);
      const storage = {
        BACKUPS_S3_ENDPOINT: s3.endpoint,
        BACKUPS_S3_BUCKET: 'locked',
        BACKUPS_S3_ACCESS_KEY_ID: account.accessKeyId,
        BACKUPS_S3_SECRET_ACCESS_KEY: account.secretAccessKey,
        CANARY_CONTROL_SECONDS: '1',
      };
      const rest = {
        spawnWorker: (environment: { DRYDOCK_FAULTS: string }) => world.spawnWorker({ ...storage, ...environment }),
        look: ({ workflowId }: Run) => lookAtRecord(world.api, workflowId),
        ledger: async () => world.ledger(),
      };
      const { cases } = await crashEveryStepInWorld(world, definition, { ...rest, ...fixture }, scope);
      expect(cases.length).toBeGreaterThan(definition.steps.length);
    };
    const proofOf = async ({ workflowId }: Run): Promise<'old' | 'new'> => {
      const rows = await world.api.rows<{ reason: string }>('SELECT reason FROM proofs WHERE workflow_id = $1', [
        workflowId,
      ]);
      if (rows.length !== 1) throw new Error(`${rows.length} proofs`);
      return rows[0]?.reason === '' ? 'new' : 'old';
    };

    it(
      'sweep_backups',
      () =>
        crash('sweep_backups', {
          start: async () => {
            await world.api.rows('UPDATE sites SET daily_backups = false');
            const about = await makeSite(world);
            await world.api.rows(
              "UPDATE sites SET daily_backups = true, created_at = now() - interval '3 days' WHERE id = $1",
              [about],
            );
            return { about, workflowId: await startPlatformWork(world.api, sweepBackupsWorkflow) };
          },
          judge: async ({ about, workflowId }) => {
            const [site] = await world.api.rows<{ begun: number; is_due: boolean }>(
              `SELECT (SELECT count(*)::int FROM backups WHERE site_id = sites.id AND kind = 'scheduled') AS begun, next_backup_at <= now() AS is_due
             FROM sites WHERE id = $1`,
              [about],
            );
            if (site === undefined || site.begun > 1) throw new Error(`${site?.begun} backups of one night`);
            if ((site.begun === 1) === site.is_due)
              throw new Error(site.is_due ? 'begun, and due all the same' : 'neither begun nor due');
            // A sweep that fails keeps the backups that it has begun, so the site may have its backup even then.
            const { status } = await lookAtRecord(world.api, workflowId);
            return site.begun === 1 && status !== 'failed' ? 'new' : 'old';
          },
        }),
      crashLimitMs,
    );

    it(
      'expire_backups',
      () =>
        crash('expire_backups', {
          start: async () => {
            const siteId = await givenSite(world.api, world.caller);
            const about = await givenBackup(world.api, world.caller, siteId, { expiresInHours: -1 });
            const folder = path.join(world.backupsDir, 'live', siteId, about, '1');
            mkdirSync(folder, { recursive: true });
            writeFileSync(path.join(folder, 'manifest'), 'x');
            return { about, workflowId: await startPlatformWork(world.api, expireBackupsWorkflow) };
          },
          judge: async ({ about, workflowId }) => {
            const [row] = await world.api.rows<{ site_id: string; status: string; purged_at: Date | null }>(
              'SELECT site_id, status::text, purged_at FROM backups WHERE id = $1',
              [about],
            );
            if (row?.purged_at == null) return 'old';
            const left = namesIn(path.join(world.backupsDir, 'live', row.site_id, about)).length;
            if (row.status !== 'expired' || left > 0) throw new Error(`${row.status} with ${left} folders`);
            // A run that fails undoes no removal, so the data may be gone even then.
            return (await lookAtRecord(world.api, workflowId)).status === 'failed' ? 'old' : 'new';
          },
        }),
      crashLimitMs,
    );

    it(
      'check_serving',
      () =>
        crash('check_serving', {
          start: async () => {
            const about = await makeSite(world);
            await world.api.rows(
              "UPDATE sites SET status = 'suspended', serve_check_at = now() - interval '1 s' WHERE id = $1",
              [about],
            );
            return { about, workflowId: await startPlatformWork(world.api, checkServingWorkflow) };
          },
          judge: async ({ about }) => {
            const [row] = await world.api.rows<{ state: string }>(
              "SELECT status || CASE WHEN serve_check_at IS NULL THEN '' ELSE ', waits' END AS state FROM sites WHERE id = $1",
              [about],
            );
            if (row?.state === 'active') return 'new';
            if (row?.state === 'suspended, waits') return 'old';
            throw new Error(row?.state);
          },
        }),
      crashLimitMs,
    );

    it(
      'take_backup, into object storage',
      () =>
        crash('take_backup', {
          start: async () => {
            const about = await makeSite(world);
            const answer = await world.api.call('POST', `/v1/sites/${about}/backups`, { body: {} });
            return { about, workflowId: workflowIdOf(answer) };
          },
          judge: async ({ about }) => {
            const [row] = await world.api.rows<{
              status: string;
              storage_key: string | null;
              locked_until: Date | null;
            }>('SELECT status::text, storage_key, locked_until FROM backups WHERE site_id = $1', [about]);
            const bucket = s3.world.buckets.get('locked');
            if (row?.status === 'failed') return 'old';
            const [manifest] = bucket.versionsOf(`${row?.storage_key}/manifest`);
            const isKept =
              manifest?.retention?.mode === 'COMPLIANCE' &&
              manifest.retention.until === row?.locked_until?.toISOString();
            if (row?.status !== 'completed' || !isKept)
              throw new Error(`${row?.status}, locked until ${manifest?.retention?.until}`);
            return 'new';
          },
        }),
      crashLimitMs,
    );

    it(
      'check_immutability',
      () =>
        crash('check_immutability', {
          start: async () => ({ about: '', workflowId: await startPlatformWork(world.api, checkImmutabilityWorkflow) }),
          judge: proofOf,
        }),
      crashLimitMs,
    );

    it(
      'restore_drill',
      () =>
        crash('restore_drill', {
          start: async () => {
            if ((await world.api.rows("SELECT 1 FROM backups WHERE kind = 'on_demand'")).length === 0) {
              const siteId = await makeSite(world);
              await fillSite(world, siteId, 1);
              await makeBackup(world, siteId);
            }
            return {
              about: '',
              workflowId: await startPlatformWork(world.api, restoreDrillWorkflow, { passedAgeMinDays: 0 }),
            };
          },
          judge: async (run) => {
            if (namesIn(path.join(world.sitesDir, 'live')).includes(run.workflowId))
              throw new Error('the drill has left its site');
            return proofOf(run);
          },
        }),
      crashLimitMs,
    );
  },
);
