import { verifyChain } from '@drydock/archive/verify-archive';
import { workflowsIn } from '@drydock/workflow/workflow';
import { assertRoom } from '../backups/restore-fetch';
import { discardStaged, stageRelease } from '../backups/restore-stage';
import { settleRestore, switchOver } from '../backups/switch-over';
import type { Tx } from '../database.store';
import { withSpan } from '../providers/driver-span';
import { hostOf, linksOf } from '../providers/site-host';
import { refOf, type WorkContext } from '../sites/work';
import { markVerified } from './copy.store';
import { recordOutcome } from './destination.store';
import { clearFetched, fetchChain, spooledChain } from './fetch-chain';
import { offsiteLimits } from './offsite-limits';
import { withStorage } from './open-destination';
import { restoreOffsiteHead } from './restore-offsite.head';
import { recheckOffsite } from './restore-offsite-recheck';
import { onStorage } from './storage-problem';

const { attemptsMax } = offsiteLimits;

/**
 * Endpoint 5's work. Every archive of the chain is brought to our disk, each object verified on its way in, and verified as a whole before a byte
 * of it is used, and each segment once more when it is; then the chain is staged beside the live release like a backup is, and {@link switchOver}.
 */
export const restoreOffsiteWorkflow = (context: WorkContext) => {
  const fetched = workflowsIn<Tx>()(restoreOffsiteHead)
    .step('recheck', { weight: 0.2, run: (step) => recheckOffsite(context, step) })
    .step('fetch', {
      ...offsiteLimits,
      weight: 6,
      run: async (step) => {
        const { chain, rawBytes } = step.outputs.recheck;
        await assertRoom(context, step, step.input.platform, rawBytes);
        await onStorage(step, attemptsMax, () => withStorage(context, step, (storage) => fetchChain(context, step, storage, chain)));
      },
      undo: (step) => clearFetched(context, step),
    })
    .step('verify', {
      ...offsiteLimits,
      weight: 3,
      run: async (step) => {
        const { chain } = step.outputs.recheck;
        await onStorage(step, attemptsMax, () =>
          withStorage(context, step, async (storage) => {
            const links = linksOf(refOf(step), spooledChain(context, step, storage, chain));
            const verified = () => verifyChain(links, context.archiveKey, { signal: step.signal });
            await withSpan('offsite.verify', { 'chain.archives': chain.length }, verified);
          }),
        );
        return { at: context.now().toISOString() };
      },
      commit: (tx, step, { at }) => {
        const ids = step.outputs.recheck.chain.map(({ id }) => id);
        return markVerified(tx, ids, new Date(at));
      },
    });
  const staged = fetched
    .step('stage', {
      ...offsiteLimits,
      weight: 10,
      run: (step) => {
        const { chain, slowsOnPurpose } = step.outputs.recheck;
        const { platform } = step.input;
        return onStorage(step, attemptsMax, () =>
          withStorage(context, step, (storage) => {
            const isLastUse = hostOf(context.siteHosts, platform).readsOnce;
            const links = spooledChain(context, step, storage, chain, { isLastUse });
            const newest = links.at(-1);
            if (newest === undefined) throw new Error('a chain without archives');
            const toStage = { ...newest, parents: links.slice(0, -1) };
            return stageRelease(context, step, { platform, slowsOnPurpose }, toStage);
          }),
        );
      },
      undo: (step) => discardStaged(context, step, step.input.platform),
    })
    .step('clear', { weight: 0.1, run: (step) => clearFetched(context, step) });
  return switchOver(context, staged)
    .onEnd({
      succeeded: async (tx, run) => {
        await settleRestore.succeeded(tx, run, context);
        await recordOutcome(tx, run.input.destinationId, '');
      },
      failed: async (tx, run, problem) => {
        await settleRestore.failed(tx, run, problem, context);
        await recordOutcome(tx, run.input.destinationId, problem.code);
      },
    })
    .build();
};
