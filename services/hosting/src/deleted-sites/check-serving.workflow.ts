import { fencedCall, type StepContext } from '@drydock/workflow/definition';
import { forgetRuns } from '@drydock/workflow/store';
import { z } from 'zod';
import { defineWorkflow, type WorkContext } from '../context/context';
import { forEachAtOnce } from '../providers/for-each-at-once';
import { serves } from '../sites/probe.rules';
import { admitServing, listWaiting, type WaitingSite } from './deleted-site.store';

/** The most sites of one run. The next run, a minute later, takes the others. */
const checksMax = 40;
const checksAtOnce = 8;
/** The time for five rounds of `checksAtOnce` checks: 24 s for each round. A probe waits up to 15 s for a page. */
const checkSeconds = 120;

/**
 * Makes a deleted site that was restored active once it serves. A site that was broken when it was deleted comes back
 * broken, and stays suspended until its owner has repaired it.
 */
export const checkServingWorkflow = defineWorkflow({
  kind: 'check_serving',
  input: z.strictObject({}),
  isRoutine: true,
})
  .step('check', {
    timeoutSeconds: checkSeconds,
    run: async (step, context) => {
      const waiting = await listWaiting(context.database.pool, step.mode, context.now(), checksMax);
      const serving: string[] = [];
      await forEachAtOnce(checksAtOnce, waiting, async (site) => {
        if (await doesServe(context, step, site)) serving.push(site.siteId);
      });
      return { asked: waiting.map(({ siteId }) => siteId), serving };
    },
    commit: async (tx, _step, { asked, serving }, context) => {
      await admitServing(tx, { asked, serving }, context.now());
      await forgetRuns(context.database.sql(tx), 'check_serving');
    },
  })
  .build();

/** Whether the site serves. False if the host does not answer. */
async function doesServe(
  { siteHosts }: WorkContext,
  step: StepContext<unknown, unknown>,
  { platform, ...site }: WaitingSite,
): Promise<boolean> {
  const probe = await siteHosts[platform]?.probe({ ...site, mode: step.mode }, fencedCall(step)).catch(() => null);
  return probe != null && serves(probe);
}
