import { modeSchema } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database/sql';
import { type Schedule, saveSchedule } from '@drydock/workflow/store/schedules';
import { checkServingWorkflow } from '../deleted-sites/check-serving.workflow';
import { checkImmutabilityWorkflow } from '../proofs/check-immutability.workflow';
import { restoreDrillWorkflow } from '../proofs/restore-drill.workflow';
import { expireBackupsWorkflow } from './expire-backups.workflow';
import { platformOrgId, platformResourceKey, platformSubject } from './platform-work';
import { sweepBackupsWorkflow } from './sweep-backups.workflow';

const minuteSeconds = 60;
const daySeconds = 24 * 3_600;
/**
 * When the first drill runs. By then a new installation may have a backup. If it has none, the drill tries again the
 * next day.
 */
const firstDrillMinutes = 3;
/** Weekly, with room for a run that is late. */
const drillAgeDays = 6.5;

interface Regular {
  kind: string;
  interval: Schedule['interval'];
  firstRunAt?: Date;
  input?: object;
}

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

/** Schedules the regular work of both modes. */
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
