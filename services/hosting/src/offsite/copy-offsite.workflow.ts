import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { fail } from '@drydock/workflow/step-error';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { z } from 'zod';
import { assertStillAllowed } from '../backups/recheck';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { findSite } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { listCopies, markCopied, markCopyFailed } from './copy.store';
import { copyOffsiteHead } from './copy-offsite.head';
import { recordOutcome } from './destination.store';
import { refuseCopy, restorableChain, type StoredCopy } from './offsite.rules';
import { offsiteLimits } from './offsite-limits';
import { requireDestination } from './open-destination';
import { discardCopy, packCopy } from './pack-copy';
import { onStorage } from './storage-problem';
import { verifyCopy } from './verify-copy';

export type CopyInput = z.infer<typeof copyOffsiteHead.input>;

/** What the copy continues, full one first; empty for a full one. JSON, as a checkpoint keeps it. */
export type ParentChain = ReadonlyArray<Pick<StoredCopy, 'id' | 'archive'>>;

/** Files and database of the current release, in full or what differs, into the customer's storage: packed, read back and verified. */
export const copyOffsiteWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(copyOffsiteHead)
    .step('recheck', { weight: 0.2, run: (step) => recheckCopy(context, step) })
    .step('pack', {
      ...offsiteLimits,
      weight: 8,
      run: (step) => onStorage(step, offsiteLimits.attemptsMax, () => packCopy(context, step, step.outputs.recheck)),
      undo: (step) => discardCopy(context, step),
    })
    .step('verify', {
      ...offsiteLimits,
      weight: 3,
      run: async (step) => {
        const { recheck, pack } = step.outputs;
        await onStorage(step, offsiteLimits.attemptsMax, () => verifyCopy(context, step, pack, recheck.parents));
        return { at: context.now().toISOString() };
      },
      commit: async (tx, step, { at }) => {
        await markCopied(tx, step.input.copyId, step.outputs.pack, new Date(at));
        await recordOutcome(tx, step.input.destinationId, '');
      },
    })
    .onEnd({
      failed: async (tx, run, { code }) => {
        await markCopyFailed(tx, run.input.copyId, code);
        await recordOutcome(tx, run.input.destinationId, code);
      },
    })
    .build();

/** Asks the request's rule again; the chain that is continued was decided with the request. */
async function recheckCopy(
  context: WorkContext,
  step: StepContext<CopyInput, unknown>,
): Promise<{ releaseId: string; parents: ParentChain }> {
  const { copyId, kind, platform } = step.input;
  const { pool } = context.database;
  const site = await findSite(pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const destination = await requireDestination(context, step);
  const copies = await listCopies(pool, destination);
  assertStillAllowed(refuseCopy({ site, unfinished: null, destination, copies }, kind));
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), orderOf(step).signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const own = copies.find(({ id }) => id === copyId);
  const parent = copies.find(({ id }) => id === own?.parentId);
  if (kind === 'full' || parent === undefined) return { releaseId: hosted.currentRelease, parents: [] };
  const chain = restorableChain(copies, parent);
  if (chain === null) throw fail('copy_chain_incomplete');
  return { releaseId: hosted.currentRelease, parents: chain.map(({ id, archive }) => ({ id, archive })) };
}
