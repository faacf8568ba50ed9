import type { Mode } from '@drydock/contracts/platform/values';
import { audit } from '@drydock/service/effects/audit';
import { startWorkflow } from '@drydock/workflow/store/start-workflow';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { insertBackup } from '../backups/backup.store';
import { takeBackupWorkflow } from '../backups/take-backup.workflow';
import type { Tx } from '../database.store';
import { isReady } from '../sites/site.rules';
import { lockSite } from '../sites/site.store';
import { sitePath, siteResourceKey, siteSubject } from '../sites/site-names';
import { defineWorkflow, type WorkContext } from '../sites/work';
import { isDue } from './nightly.rules';
import { listNightlySites } from './nightly.store';

/** Started by one sweep; those that are left are due at the next one, minutes later. */
const startsMax = 50;

interface DueSite {
  siteId: string;
  orgId: string;
}

/** The nightly backups. A site that somebody is at work on is due again at the next sweep. */
export const sweepBackupsWorkflow = defineWorkflow({ kind: 'sweep_backups', input: z.strictObject({}) })
  .step('find_due', { run: async (step, context) => ({ due: await findDue(context, step.mode) }) })
  .step('start_due', {
    run: async () => null,
    // With the checkpoint, so that a sweep which dies has started all of them or none.
    commit: async (tx, step, _output, context) => {
      for (const due of step.outputs.find_due.due) await startBackup(context, tx, step, due);
    },
  })
  .build();

async function findDue({ database, now }: WorkContext, mode: Mode): Promise<DueSite[]> {
  const due: DueSite[] = [];
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof listNightlySites>> = await listNightlySites(database.pool, mode, now(), after);
    for (const site of page.sites) if (isDue(site, now())) due.push({ siteId: site.id, orgId: site.orgId });
    after = page.next;
  } while (after !== null && due.length < startsMax);
  return due.slice(0, startsMax);
}

async function startBackup(
  context: WorkContext,
  tx: Tx,
  step: { mode: Mode; requestId: string },
  { siteId, orgId }: DueSite,
): Promise<void> {
  const { mode, requestId } = step;
  const site = await lockSite(tx, { orgId, mode }, siteId);
  if (site === null || !isReady(site.status)) return;
  const backupId = uuidv7();
  const sql = context.database.sql(tx);
  const { kind } = takeBackupWorkflow;
  const work = { kind, definition: takeBackupWorkflow, resourceKey: siteResourceKey(siteId), subject: siteSubject(siteId) };
  const input = { backupId, platform: site.platform };
  const { started, workflowId } = await startWorkflow(sql, { ...work, orgId, mode, input, actorKeyId: null, requestId });
  if (!started) return;
  const location = context.backupStorage.locationIn(mode);
  await insertBackup(tx, site, { id: backupId, siteId, kind: 'scheduled', workflowId, createdAt: context.now(), location });
  await audit(sql, { orgId, mode, actorKeyId: null, action: 'backup.take', target: sitePath(siteId), workflowId });
}
