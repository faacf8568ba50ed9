import type { preflightSiteOffsiteRestore as endpoint } from '@drydock/contracts/hosting/offsite';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { viewPreflight } from '../backups/preflight-restore.view';
import type { HandlerContext } from '../context';
import { describeSite } from '../providers/site-host';
import { readSite } from '../sites/find-site';
import { findNamed, lookAtStorage } from './look-at-storage';
import { rawBytesOf, refuseRestore, restorableChain } from './offsite.rules';
import { readOffsiteWorld } from './offsite-state';

/**
 * The preflight of a restore from a copy: asks the same rule and checks the storage in the same way. A host that does
 * not answer is a finding, not a failure.
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
      const rawBytes = chain === null ? null : rawBytesOf(chain);
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
  }) satisfies ReadHandlers<typeof endpoint>;
