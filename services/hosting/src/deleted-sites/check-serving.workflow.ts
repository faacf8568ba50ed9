import { timeLimit } from '@drydock/process';
import { type FencedCall, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { forgetRuns } from '@drydock/workflow/store';
import { z } from 'zod';
import { defineWorkflow, type WorkContext } from '../context/context';
import { forEachAtOnce } from '../providers/for-each-at-once';
import { serves } from '../sites/probe.rules';
import { admitServing, listWaiting, type WaitingSite } from './deleted-site.store';

/** The most sites that one run checks. The next run, a minute later, takes the others. */
const checksMax = 40;
const checksAtOnce = 8;
/**
 * A check that takes longer counts as no answer. A page may take 15 s. Without this limit, calls to a silent ssh host
 * would use up the time of the step.
 */
const checkMs = 20_000;
/** Enough for `checksMax` checks of `checkMs` each, `checksAtOnce` at a time: 100 s. */
const stepSeconds = 120;

/**
 * Gives restored deleted sites the status `active` once they serve. A site that was broken when it was deleted comes
 * back broken, and stays suspended until its owner has repaired it.
 */
export const checkServingWorkflow = defineWorkflow({
  kind: 'check_serving',
  input: z.strictObject({}),
  isRoutine: true,
})
  .step('check', {
    timeoutSeconds: stepSeconds,
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

/** Whether the site serves. False if the host does not answer in `checkMs`. */
export async function doesServe(
  { siteHosts }: Pick<WorkContext, 'siteHosts'>,
  step: Pick<StepContext<unknown, unknown>, 'mode' | keyof FencedCall>,
  { platform, ...site }: WaitingSite,
): Promise<boolean> {
  const call = { ...fencedCall(step), signal: AbortSignal.any([step.signal, timeLimit(checkMs)]) };
  const probe = await siteHosts[platform]?.probe({ ...site, mode: step.mode }, call).catch(() => null);
  return probe != null && serves(probe);
}
