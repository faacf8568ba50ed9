import { modeSchema } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import type { Log } from '@drydock/service/telemetry';
import type { WorkflowDefinition } from '@drydock/workflow/definition';
import { type Schedule, saveSchedule } from '@drydock/workflow/store';
import { restartAppWorkflow } from './app/restart-app.workflow';
import { restoreBackupWorkflow } from './backups/restore-backup.workflow';
import { takeBackupWorkflow } from './backups/take-backup.workflow';
import type { WorkContext } from './context/context';
import type { HostingDatabase, Tx } from './context/database.store';
import { checkServingWorkflow } from './deleted-sites/check-serving.workflow';
import { deleteSiteWorkflow } from './deleted-sites/delete-site.workflow';
import { purgeDeletedSitesWorkflow } from './deleted-sites/purge-deleted-sites.workflow';
import { restoreDeletedSiteWorkflow } from './deleted-sites/restore-deleted-site.workflow';
import { configureOffsiteWorkflow } from './offsite/configure-offsite.workflow';
import { copyOffsiteWorkflow } from './offsite/copy-offsite.workflow';
import { restoreOffsiteWorkflow } from './offsite/restore-offsite.workflow';
import { checkImmutabilityWorkflow } from './proofs/check-immutability.workflow';
import { restoreDrillWorkflow } from './proofs/restore-drill.workflow';
import { expireBackupsWorkflow } from './retention/expire-backups.workflow';
import { sweepBackupsWorkflow } from './retention/sweep-backups.workflow';
import { createSiteWorkflow } from './sites/create-site.workflow';
import { platformOrgId, platformResourceKey, platformSubject } from './sites/site.types';
import { vendorRestoreWorkflow } from './vendor-snapshots/vendor-restore.workflow';
import { vendorTakeSnapshotWorkflow } from './vendor-snapshots/vendor-take-snapshot.workflow';

/** Every workflow of this service. Crash tests kill a worker in each step of each workflow. */
export const workflows: readonly WorkflowDefinition<WorkContext, Tx>[] = [
  createSiteWorkflow,
  deleteSiteWorkflow,
  takeBackupWorkflow,
  restoreBackupWorkflow,
  configureOffsiteWorkflow,
  copyOffsiteWorkflow,
  restoreOffsiteWorkflow,
  restartAppWorkflow,
  vendorRestoreWorkflow,
  vendorTakeSnapshotWorkflow,
  restoreDeletedSiteWorkflow,
  purgeDeletedSitesWorkflow,
  checkServingWorkflow,
  sweepBackupsWorkflow,
  expireBackupsWorkflow,
  checkImmutabilityWorkflow,
  restoreDrillWorkflow,
];

const minuteSeconds = 60;
const daySeconds = 24 * 3_600;
/**
 * The minutes after which a new installation looks for a backup to drill. If it has none by then, it looks again a day
 * later.
 */
const firstDrillMinutes = 3;
/**
 * A passed drill is repeated from this age on. It is less than seven days, because the daily look comes a little less
 * than seven days after the end of the last drill.
 */
const drillAgeDays = 6.5;

interface Regular {
  kind: string;
  interval: Schedule['interval'];
  firstRunAt?: Date;
  input?: object;
}

/** The workflows that run by the clock in each mode, except the purge of deleted sites. */
const regulars = (now: Date): Regular[] => [
  { kind: sweepBackupsWorkflow.kind, interval: { intervalSeconds: 10 * minuteSeconds } },
  { kind: checkServingWorkflow.kind, interval: { intervalSeconds: minuteSeconds } },
  { kind: expireBackupsWorkflow.kind, interval: { intervalSeconds: 60 * minuteSeconds } },
  { kind: checkImmutabilityWorkflow.kind, interval: { dailyAt: '06:30' } },
  {
    kind: restoreDrillWorkflow.kind,
    interval: { intervalSeconds: daySeconds },
    input: { passedAgeMinDays: drillAgeDays },
    firstRunAt: new Date(now.getTime() + firstDrillMinutes * minuteSeconds * 1_000),
  },
];

export async function scheduleRegulars(sql: Sql): Promise<void> {
  for (const mode of modeSchema.options) {
    for (const { kind, input = {}, ...when } of regulars(new Date())) {
      const name = `${kind}:${mode}`;
      const resourceKey = platformResourceKey(kind, mode);
      await saveSchedule(sql, {
        name,
        kind,
        resourceKey,
        subject: platformSubject,
        orgId: platformOrgId,
        mode,
        input,
        ...when,
      });
    }
  }
}

const intervalSeconds = 3_600;

async function schedulePurges(sql: Sql): Promise<void> {
  for (const mode of ['live', 'sandbox'] as const) {
    const name = `purge_deleted_sites:${mode}`;
    await saveSchedule(sql, {
      name,
      kind: 'purge_deleted_sites',
      resourceKey: name,
      subject: { type: 'platform', id: 'deleted-sites' },
      orgId: platformOrgId,
      mode,
      input: { deletedSiteId: null },
      interval: { intervalSeconds },
    });
  }
}

/**
 * These functions write the rows of schedules. The relay starts the work of every row that is due, even if the queue is
 * lost. Writing the same rows again changes nothing.
 */
const schedules: ReadonlyArray<(sql: Sql) => Promise<void>> = [schedulePurges, scheduleRegulars];

const retryMs = 5_000;

/** Writes the schedules, and tries again after an error. A worker starts without waiting for this. */
export function keepSchedules(database: HostingDatabase, log: Log): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const save = (): void => {
    database
      .transaction(async (tx) => {
        for (const schedule of schedules) await schedule(database.sql(tx));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'the schedules could not be put down; they are tried again');
        if (!isStopped) timer = setTimeout(save, retryMs).unref();
      });
  };
  save();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
