import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import type { z } from 'zod';
import { assertStillAllowed } from '../backups/recheck';
import { hostOf } from '../providers/site-host';
import { sandboxBehaviour } from '../sites/sandbox.rules';
import { retentionDaysOf } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { listCopies } from './copy.store';
import type { StoredChain } from './look-at-chain';
import { presumably, rawBytesOf, refuseRestore, restorableChain } from './offsite.rules';
import { requireDestination } from './open-destination';
import type { restoreOffsiteHead } from './restore-offsite.head';

export type RestoreOffsiteInput = z.infer<typeof restoreOffsiteHead.input>;

/** What the later steps go by. */
export interface OffsitePlan {
  /** Full one first, the copy that was named last. */
  chain: StoredChain;
  /** Bytes that a release of it holds at most. */
  rawBytes: number;
  /** Served until the switch; the safety copy is made of it. */
  oldRelease: string;
  retentionDays: number;
  /** The sandbox's own error paths. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/** Asks the request's rule again, as the site was before this workflow took it. */
export async function recheckOffsite(context: WorkContext, step: StepContext<RestoreOffsiteInput, unknown>): Promise<OffsitePlan> {
  const { copyId, platform, statusBefore } = step.input;
  const { pool } = context.database;
  const site = await findSite(pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const destination = await requireDestination(context, step);
  const copies = presumably(await listCopies(pool, destination));
  const copy = copies.find(({ id }) => id === copyId) ?? null;
  assertStillAllowed(refuseRestore({ site: { ...site, status: statusBefore }, unfinished: null, destination, copies }, copy));
  const chain = copy === null ? null : restorableChain(copies, copy);
  if (chain === null) throw fail('copy_chain_incomplete');
  const hosted = await hostOf(context.siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return {
    chain: chain.map(({ id, archive }) => ({ id, archive })),
    rawBytes: rawBytesOf(chain),
    oldRelease: hosted.currentRelease,
    retentionDays: retentionDaysOf(site),
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}
