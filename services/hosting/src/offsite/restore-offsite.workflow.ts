import { verifyChain } from '@drydock/archive';
import { fail, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { assertRoom, discardStaged, isRestored, replacedBy, stageRelease } from '../backups/restore.steps';
import { restoreEnd, switchOver, switchOverInput } from '../backups/switch-over.steps';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import { withSpan } from '../providers/driver-span';
import { hostOf, linksOf } from '../providers/site-host';
import { assertStillAllowed } from '../sites/definite-failure';
import { noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { retentionDaysOf, sandboxBehaviour } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { clearFetched, fetchChain, onSpool, type StoredChain, spooledChain } from './fetch-chain';
import { assumePresent, rawBytesOf, refuseRestore, restorableChain } from './offsite.rules';
import { listCopies, markVerified, recordOutcome } from './offsite.store';
import { offsiteLimits, onStorage, requireDestination, withStorage } from './open-destination';

const { attemptsMax } = offsiteLimits;

const input = z.strictObject({ copyId: z.uuid(), destinationId: z.uuid(), ...switchOverInput });

/** The checkpoint of the step `recheck`. */
interface OffsitePlan {
  /** The full copy comes first, the named copy last. */
  chain: StoredChain;
  /** The most bytes that a restore from the chain can write. Only workers of the previous release read it. */
  rawBytes: number;
  /** The release that is live until the switch. The safety copy is packed from it. */
  oldRelease: string;
  retentionDays: number;
  answer: RecordedAnswer;
  /** The two flags are true only for a sandbox site whose name asks for a failing or a slow restore. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

const staged = defineWorkflow({ kind: 'restore_offsite', input })
  .step('recheck', { weight: 0.2, run: (step, context) => recheckOffsite(context, step) })
  .step('fetch', {
    ...offsiteLimits,
    weight: 6,
    run: async (step, context) => {
      const { chain, oldRelease } = step.outputs.recheck;
      const { platform } = step.input;
      if (await isRestored(context, step, platform, oldRelease)) return;
      const assertRoomFor = (rawBytes: number) => assertRoom(context, step, platform, rawBytes);
      await onStorage(step, attemptsMax, () =>
        withStorage(context, step, (storage) =>
          onSpool(context, step, () => fetchChain(context, step, storage, chain, assertRoomFor)),
        ),
      );
    },
    undo: (step, context) => clearFetched(context, step),
  })
  .step('verify', {
    ...offsiteLimits,
    weight: 3,
    run: async (step, context) => {
      const { chain, oldRelease } = step.outputs.recheck;
      if (await isRestored(context, step, step.input.platform, oldRelease)) return { at: null };
      await onStorage(step, attemptsMax, () =>
        withStorage(context, step, async (storage) => {
          const links = linksOf(refOf(step), spooledChain(context, step, storage, chain));
          const verified = () => verifyChain(links, context.archiveKey, { signal: step.signal });
          // A worker that did not run `fetch` has an empty spool, which the verification fills.
          await onSpool(context, step, () => withSpan('offsite.verify', { 'chain.archives': chain.length }, verified));
        }),
      );
      return { at: context.now().toISOString() };
    },
    commit: async (tx, step, { at }) => {
      // Only the newest copy was read as a whole. The streams of the older copies are superseded and were not read.
      const newest = step.outputs.recheck.chain.at(-1);
      if (at !== null && newest !== undefined) await markVerified(tx, [newest.id], new Date(at));
    },
  })
  .step('stage', {
    ...offsiteLimits,
    weight: 10,
    run: (step, context) => {
      const { chain, ...plan } = step.outputs.recheck;
      const { platform } = step.input;
      return onStorage(step, attemptsMax, () =>
        withStorage(context, step, (storage) => {
          const isLastUse = hostOf(context.siteHosts, platform).readsOnce;
          const links = spooledChain(context, step, storage, chain, { isLastUse });
          const newest = links.at(-1);
          if (newest === undefined) throw new Error('a chain without archives');
          const toStage = { ...newest, parents: links.slice(0, -1), contents: step.input.contents };
          return stageRelease(context, step, { ...plan, platform }, toStage);
        }),
      );
    },
    undo: (step, context) => discardStaged(context, step, step.input.platform),
  })
  .step('clear', { weight: 0.1, run: (step, context) => clearFetched(context, step) });

/**
 * Restores a site from a copy. Fetches the objects of the chain to the worker's disk, verifies them, and unpacks the
 * chain beside the live release. The superseded streams of older copies are left out. The steps of {@link switchOver}
 * do the rest.
 */
export const restoreOffsiteWorkflow = switchOver(staged)
  .onEnd({
    succeeded: async (tx, run, context) => {
      await restoreEnd.succeeded(tx, run, context);
      await recordOutcome(tx, run.input.destinationId, '');
    },
    failed: async (tx, run, problem, context) => {
      await restoreEnd.failed(tx, run, problem, context);
      await recordOutcome(tx, run.input.destinationId, problem.code);
    },
  })
  .build();

/** Applies the rule of the request again, to the status that the site had before the request set it to `restoring`. */
async function recheckOffsite(
  context: WorkContext,
  step: StepContext<z.infer<typeof input>, unknown>,
): Promise<OffsitePlan> {
  const { copyId, platform, statusBefore } = step.input;
  const { pool } = context.database;
  const site = await findSite(pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const destination = await requireDestination(context, step);
  const copies = assumePresent(await listCopies(pool, destination));
  const copy = copies.find(({ id }) => id === copyId) ?? null;
  assertStillAllowed(
    refuseRestore({ site: { ...site, status: statusBefore }, unfinished: null, destination, copies }, copy),
  );
  const chain = copy === null ? null : restorableChain(copies, copy);
  if (chain === null) throw fail('copy_chain_incomplete');
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return {
    chain: chain.map(({ id, archive }) => ({ id, archive })),
    rawBytes: rawBytesOf(chain, platform),
    oldRelease: replacedBy(step, hosted),
    retentionDays: retentionDaysOf(site),
    answer: copy?.answer ?? noAnswer,
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}
