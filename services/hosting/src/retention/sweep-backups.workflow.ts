import type { StepContext } from '@drydock/workflow/definition';
import { startWorkflow } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { movingLimits } from '../backups/archive.steps';
import { lookAgainAt } from '../backups/backup.rules';
import { insertBackup } from '../backups/backup.store';
import { takeBackupWorkflow } from '../backups/take-backup.workflow';
import { defineWorkflow, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { sitePath, siteResourceKey, siteSubject } from '../sites/site.types';
import { decideNightly } from './nightly.rules';
import { type NightlySite, pageSites, setNextLooks, takeNightlySites } from './retention.store';

type Step = Pick<StepContext<unknown, unknown>, 'mode' | 'requestId'>;

/**
 * Begins the nightly backups. The row of each site has the time at which the site is next considered, so that a sweep
 * reads only sites that are due. With 300,000 sites each of the 36 sweeps of a night begins 8,333 backups.
 */
export const sweepBackupsWorkflow = defineWorkflow({ kind: 'sweep_backups', input: z.strictObject({}) })
  // This step fixes the time by which sites count as due, even if another worker completes the sweep. A site that
  // becomes due later waits for the next sweep, so that every sweep ends.
  .step('find_due', { run: async (_step, context) => ({ until: context.now().toISOString() }) })
  .step('start_due', {
    ...movingLimits,
    run: async (step, context) => {
      const until = new Date(step.outputs.find_due.until);
      let started = 0;
      for (;;) {
        step.signal.throwIfAborted();
        const page = await context.database.transaction((tx) => startPage(context, tx, step, until));
        started += page.started;
        if (page.looked < pageSites) return { started };
      }
    },
  })
  .build();

/**
 * Begins the backups of some sites and sets when each site is next considered, in one transaction. So after a crash a
 * site is either still due, or its backup has begun.
 */
async function startPage(
  context: WorkContext,
  tx: Tx,
  step: Step,
  until: Date,
): Promise<{ looked: number; started: number }> {
  const sites = await takeNightlySites(tx, step.mode, until);
  const looks: Array<{ siteId: string; at: Date }> = [];
  let started = 0;
  for (const site of sites) {
    const { isDue, nextLookAt } = decideNightly(site, context.now());
    const isStarted = isDue && (await startBackup(context, tx, step, site));
    if (isStarted) started += 1;
    looks.push({ siteId: site.id, at: isDue && !isStarted ? lookAgainAt(context.now()) : nextLookAt });
  }
  if (looks.length > 0) await setNextLooks(tx, looks);
  return { looked: sites.length, started };
}

/** Resolves with false, and begins nothing, if the site has an unfinished workflow. */
async function startBackup(
  context: WorkContext,
  tx: Tx,
  { mode, requestId }: Step,
  { id: siteId, orgId, platform }: NightlySite,
): Promise<boolean> {
  const backupId = uuidv7();
  const sql = context.database.sql(tx);
  const { kind } = takeBackupWorkflow;
  const work = {
    kind,
    definition: takeBackupWorkflow,
    resourceKey: siteResourceKey(siteId),
    subject: siteSubject(siteId),
  };
  const input = { backupId, platform };
  const audit = { action: 'backup.take', target: sitePath(siteId) };
  const { started, workflowId } = await startWorkflow(sql, {
    ...work,
    orgId,
    mode,
    input,
    actorKeyId: null,
    requestId,
    audit,
  });
  if (!started) return false;
  const location = context.backupStorage.locationIn(mode);
  await insertBackup(
    tx,
    { orgId, mode },
    { id: backupId, siteId, kind: 'scheduled', workflowId, createdAt: context.now(), location },
  );
  return true;
}
