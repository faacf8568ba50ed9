import type {
  preflightSiteVendorRestore,
  restoreSiteVendorSnapshot,
} from '@drydock/contracts/hosting/vendor-snapshots';
import type { Finding, Preflight } from '@drydock/contracts/platform/preflight';
import { Problem } from '@drydock/contracts/platform/problem';
import type { AwaitHandlers, ReadHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import { assertAllowedOn, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { VendorPoint } from '../providers/vendor-timeline.types';
import { holdSite, readSite } from '../sites/find-site';
import { sitePath, siteResourceKey } from '../sites/site.types';
import { type AcceptedOrder, acceptOrder, awaitAcceptance } from './accept-order';
import { lookMs, readTimelines, type Timelines } from './read-timelines';
import { vendorRestoreWorkflow } from './vendor-restore.workflow';
import { findItem, nameBeside, refuseVendorRestore, type VendorWish } from './vendor-snapshot.rules';

/**
 * The preflight of a vendor's restore: asks the same rule about the vendor's live listing and changes nothing. When the
 * vendor does not answer, it reports the same refusal as the restore itself.
 */
export const preflightVendorRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { body, now, requestId } = request;
      const site = await readSite(context, request);
      const wish = {
        scope: body.scope,
        itemId: body.item_id ?? '',
        handle: body.timestamp,
        isBeside: body.temp_mailbox ?? false,
      };
      const unfinished = await findUnfinished(context.database.sql(), siteResourceKey(site.id));
      const view = (facts: Pick<Preflight, 'would' | 'point' | 'refusal' | 'findings'>) => ({
        status: 200 as const,
        body: { ...facts, resource: sitePath(site.id), space: null, undo: false as const },
      });
      const timelines = await readTimelines(context, site, AbortSignal.timeout(lookMs.before)).catch(
        (error: unknown) => {
          if (error instanceof Problem) return error;
          throw error;
        },
      );
      if (timelines instanceof Problem)
        return view({
          would: wouldOf(site.primaryDomain, wish, null),
          point: null,
          refusal: timelines.body(requestId),
          findings: [],
        });
      const { listing } = timelines;
      const item = findItem(listing, wish);
      const point = item?.points.find(({ handle }) => handle === wish.handle) ?? null;
      const refusal = refuseVendorRestore({ listing, unfinished }, wish);
      const beside = wish.isBeside && point !== null ? `temp-${nameBeside(listing, wish.itemId)}` : null;
      return view({
        would: wouldOf(site.primaryDomain, wish, beside, item?.name),
        point: point === null ? null : viewPoint(point, now),
        refusal: refusal === null ? null : problemOf(refusal).body(requestId),
        findings: point === null || wish.isBeside ? [] : findingsOf(point, wish),
      });
    },
  }) satisfies ReadHandlers<typeof preflightSiteVendorRestore>;

function wouldOf(
  domain: string,
  { scope, itemId, isBeside }: VendorWish,
  beside: string | null,
  name = itemId,
): string {
  if (isBeside)
    return (
      `Restore the mailbox ${name} of ${domain} beside the live one${beside === null ? '' : `, as ${beside}`}; ` +
      'the live one stays'
    );
  const what = scope === 'web' ? 'the website' : `the ${scope} ${name}`;
  return `Have the platform overwrite ${what} of ${domain}; the current state is not kept`;
}

function viewPoint({ handle, takenAt }: VendorPoint, now: Date): Preflight['point'] {
  return {
    id: handle,
    taken_at: takenAt.toISOString(),
    age_seconds: Math.max(0, Math.floor((now.getTime() - takenAt.getTime()) / 1_000)),
  };
}

function findingsOf({ takenAt }: VendorPoint, { scope }: VendorWish): Finding[] {
  const lost = `Everything written since ${takenAt.toISOString()} is lost.`;
  const detail =
    scope === 'mailbox'
      ? `${lost} temp_mailbox restores beside the live one.`
      : `${lost} A snapshot taken now would keep the current state.`;
  return [{ level: 'WARNING', code: 'no_safety_copy', detail }];
}

/** Checks the named point against the live listing and commits the order. The answer is the vendor's own. */
export const restoreVendorSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) =>
      readTimelines(context, await readSite(context, request), AbortSignal.timeout(lookMs.before)),
    execute: async (tx: Tx, request, timelines) => {
      const { scope, timestamp: handle, item_id: itemId = '', temp_mailbox: isBeside = false } = request.body;
      const site = await holdSite(tx, request);
      const asked = { scope, itemId, handle, isBeside };
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseVendorRestore({ listing: timelines.listing, unfinished }, asked);
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      const order = { definition: vendorRestoreWorkflow, scope, itemId, more: { handle, isBeside } };
      return acceptOrder(context, tx, request, site, timelines, order);
    },
    awaitOutcome: async (request, accepted) => awaitAcceptance(context, await readSite(context, request), accepted),
  }) satisfies AwaitHandlers<typeof restoreSiteVendorSnapshot, Tx, Timelines, AcceptedOrder>;
