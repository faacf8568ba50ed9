import { modeSchema } from '@drydock/contracts/values';
import type { Sql } from '@drydock/database/sql';
import { type Schedule, saveSchedule } from '@drydock/workflow/schedules';
import { checkImmutabilityHead } from '../proofs/check-immutability.head';
import { restoreDrillHead } from '../proofs/restore-drill.head';
import { expireBackupsHead } from './expire-backups.head';
import { platformOrgId, platformResourceKey, platformSubject } from './platform-work';
import { sweepBackupsHead } from './sweep-backups.head';

const minuteSeconds = 60;
const weekSeconds = 7 * 24 * 3_600;
/** By then a new installation has a backup to drill with, or will be told that it has none. */
const firstDrillMinutes = 15;

interface Regular {
  kind: string;
  rhythm: Schedule['rhythm'];
  firstRunAt?: Date;
}

const regulars = (now: Date): Regular[] => [
  { kind: sweepBackupsHead.kind, rhythm: { intervalSeconds: 10 * minuteSeconds } },
  { kind: expireBackupsHead.kind, rhythm: { intervalSeconds: 60 * minuteSeconds } },
  { kind: checkImmutabilityHead.kind, rhythm: { dailyAt: '06:30' } },
  {
    kind: restoreDrillHead.kind,
    rhythm: { intervalSeconds: weekSeconds },
    firstRunAt: new Date(now.getTime() + firstDrillMinutes * minuteSeconds * 1_000),
  },
];

/** What the clock starts, in both worlds. */
export async function scheduleRegulars(sql: Sql): Promise<void> {
  for (const mode of modeSchema.options) {
    for (const { kind, ...when } of regulars(new Date())) {
      const name = `${kind}:${mode}`;
      const resourceKey = platformResourceKey(kind, mode);
      await saveSchedule(sql, { name, kind, resourceKey, subject: platformSubject, orgId: platformOrgId, mode, input: {}, ...when });
    }
  }
}
