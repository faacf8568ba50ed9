import type { preflightSiteOffsiteRestore, restoreSiteOffsite } from '@drydock/contracts/hosting/offsite';
import { timeLimit } from '@drydock/process';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { archiveFailure, type Refusal } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, followHeaders, problemOf } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import { viewPreflight } from '../backups/restore-backup';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { OffsiteError } from '../providers/offsite-storage';
import { describeSite } from '../providers/site-host';
import { changeStatus } from '../sites/site.store';
import { onSite, type Site, sitePath } from '../sites/site.types';
import { holdSite, readListPage, readSite } from '../sites/site-record';
import { lookAtChain } from './fetch-chain';
import { assumePresent, findNamed, rawBytesOf, refuseRestore, restorableChain } from './offsite.rules';
import { recordPresence } from './offsite.store';
import { copyList, readOffsiteState, readOffsiteWorld } from './offsite-state';
import { lookMs, storageUnavailable } from './open-destination';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

/**
 * Looks for the chain of the named copy in the customer's storage, and records which copies are missing. Resolves with
 * the reason why the chain cannot be restored. Null if every manifest that was read in time is there and unaltered; the
 * workflow reads the others. Also null if `refuseRestore` refuses the request already, because then the storage is not
 * asked.
 */
async function lookAtStorage(context: HandlerContext, site: Site, copyId: string, now: Date): Promise<Refusal | null> {
  const { database } = context;
  const known = await readOffsiteWorld(context, database.pool, site);
  const world = { ...known, copies: assumePresent(known.copies) };
  const copy = findNamed(world.copies, copyId);
  const chain = copy === null ? null : restorableChain(world.copies, copy);
  if (world.destination === null || chain === null || refuseRestore(world, copy) !== null) return null;
  const limit = timeLimit(lookMs);
  const reader = context.offsite.open(world.destination, { signal: limit });
  try {
    const seen = await lookAtChain(reader, chain, limit);
    await database.transaction((tx) => recordPresence(tx, seen, now));
    if (seen.missing.length > 0) return { code: 'copy_chain_incomplete' };
    return seen.altered.length > 0 ? { code: 'copy_tampered' } : null;
  } catch (error) {
    return refusalOf(error);
  } finally {
    reader.close();
  }
}

function refusalOf(error: unknown): Refusal {
  const failure = error instanceof OffsiteError ? archiveFailure(error.refusal, 'site_copy', error) : undefined;
  return failure === undefined
    ? { code: 'dependency_unavailable', ...storageUnavailable }
    : { code: failure.problem.code };
}

/**
 * Decides by the same rule as the restore, and asks the storage in the same way. A host that does not answer is a
 * finding, not an error.
 */
export const preflightOffsite = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, query, requestId } = request;
      const site = await readSite(context, request);
      const [storageRefusal, hosted] = await Promise.all([
        lookAtStorage(context, site, body.copy_id, now),
        describeSite(context.siteHosts, site).catch(() => null),
      ]);
      const world = await readOffsiteWorld(context, context.database.pool, site);
      const copy = findNamed(world.copies, body.copy_id);
      const chain = copy === null ? null : restorableChain(world.copies, copy);
      const refusal = refuseRestore(world, copy) ?? storageRefusal;
      const rawBytes = chain === null ? null : rawBytesOf(chain, site.platform);
      const facts = {
        site,
        contents: query.contents,
        point: copy,
        rawBytes,
        freeBytes: hosted?.freeBytes ?? null,
        isMissing: false,
        ...(copy !== null && { skipped: copy.skipped, answer: copy.answer }),
      };
      return {
        status: 200,
        body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId), now),
      };
    },
  }) satisfies ReadHandlers<typeof preflightSiteOffsiteRestore>;

/** Accepts a restore of the site from the named copy, which {@link restoreOffsiteWorkflow} carries out. */
export const restoreOffsite = (context: HandlerContext) =>
  ({
    preload: async (request) =>
      lookAtStorage(context, await readSite(context, request), request.body.copy_id, request.now),
    execute: async (tx: Tx, request, storageRefusal) => {
      const site = await holdSite(tx, request);
      const world = await readOffsiteWorld(context, tx, site);
      const copy = findNamed(world.copies, request.body.copy_id);
      assertAllowed(refuseRestore(world, copy) ?? storageRefusal);
      if (world.destination === null || copy === null) throw new Error('a restore was allowed without a copy');
      const input = {
        copyId: copy.id,
        destinationId: world.destination.id,
        safetyCopyId: uuidv7(),
        platform: site.platform,
        statusBefore: site.status,
        ...request.query,
      };
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onSite(site.id),
        definition: restoreOffsiteWorkflow,
        input,
        action: 'offsite.restore',
      });
      await changeStatus(tx, site.id, 'restoring');
      const state = await readOffsiteState(
        context,
        tx,
        site,
        readListPage(context, copyList, { ...request, query: {} }),
      );
      return {
        status: 202,
        headers: followHeaders(sitePath(site.id), workflowId),
        body: { workflow_id: workflowId, state },
      };
    },
  }) satisfies ExecuteHandlers<typeof restoreSiteOffsite, Tx, Refusal | null>;
