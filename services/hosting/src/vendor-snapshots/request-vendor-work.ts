import type {
  preflightSiteVendorRestore,
  restoreSiteVendorSnapshot,
  takeSiteVendorSnapshot as takeSiteVendorSnapshotEndpoint,
  VendorScope,
  VendorSnapshotSurface,
} from '@drydock/contracts/hosting/vendor-snapshots';
import type { Finding, Preflight } from '@drydock/contracts/platform/preflight';
import { Problem, problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import { timeLimit } from '@drydock/process';
import type { AwaitHandlers, ReadHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import {
  type Asking,
  acceptWorkflow,
  assertAllowedOn,
  followHeaders,
  problemOf,
  readStartBy,
  startDecidedMs,
} from '@drydock/workflow/http';
import { findUnfinished, type WorkflowStart, waitForStep } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import type { VendorPoint } from '../providers/vendor-timeline.types';
import { onSite, type Site, sitePath, siteResourceKey } from '../sites/site.types';
import { holdSite, readSite } from '../sites/site-record';
import {
  amendByWork,
  lookMs,
  readTimelines,
  type Timelines,
  vendorUnavailable,
  viewVendorSurface,
} from './read-timelines';
import { withdrawOrder } from './vendor-order.store';
import { vendorRestoreWorkflow } from './vendor-restore.workflow';
import {
  findItem,
  nameBeside,
  refuseVendorRestore,
  refuseVendorSnapshot,
  type VendorWish,
} from './vendor-snapshot.rules';
import { vendorTakeSnapshotWorkflow } from './vendor-take-snapshot.workflow';

/**
 * A request to the vendor that Drydock has accepted and a worker is to send. The fields are stored, so that they
 * survive a crash of the process, and must be plain JSON.
 */
interface AcceptedOrder {
  workflowId: string;
  /** The surface at the time of the acceptance. The answer shows it if the listing cannot be read afterwards. */
  surface: VendorSnapshotSurface;
}

/**
 * Waits, outside any transaction, until the vendor has answered. Resolves with 202 if the vendor has accepted, or if
 * the request was sent but the vendor's answer is still missing. Throws the refusal of the vendor, if it has refused.
 * Throws 503 if the request will never be sent, or if no job has come of it.
 */
async function awaitAcceptance(context: HandlerContext, site: Site, { workflowId, surface }: AcceptedOrder) {
  const { database, listener } = context;
  const waited = await waitForStep(database, workflowId, 'send', startDecidedMs, { listener });
  if (waited.state === 'cancelled')
    throw problem('dependency_unavailable', { extra: { dependency: 'hosting-worker' }, retryAfterSeconds: 5 });
  if (waited.state === 'failed') {
    const { code, extra } = waited.problem;
    const isTold = problems[code].status === 422 || problems[code].status === 404;
    throw isTold ? problem(code, extra === undefined ? {} : { extra }) : vendorUnavailable();
  }
  if (waited.state === 'pending' && (await database.transaction((tx) => withdrawOrder(tx, workflowId))))
    throw vendorUnavailable();
  return {
    status: 202 as const,
    headers: followHeaders(sitePath(site.id), workflowId),
    body: await currentSurface(context, site, surface),
  };
}

async function currentSurface(
  context: HandlerContext,
  site: Site,
  before: VendorSnapshotSurface,
): Promise<VendorSnapshotSurface> {
  const unfinished = await findUnfinished(context.database.sql(), siteResourceKey(site.id));
  return readTimelines(context, site, timeLimit(lookMs.after)).then(
    ({ listing }) => viewVendorSurface(listing, unfinished),
    () => amendByWork(before, unfinished),
  );
}

interface OrderToAccept {
  definition: NonNullable<WorkflowStart['definition']>;
  scope: VendorScope;
  itemId: string;
  /** The further fields in the input of the workflow. */
  more: object;
}

/** Accepts a request that a worker then sends to the vendor. The step `send` writes the audit entry. */
async function acceptOrder(
  context: HandlerContext,
  tx: Tx,
  request: Asking,
  site: Site,
  { packageId, listing }: Timelines,
  { definition, scope, itemId, more }: OrderToAccept,
): Promise<AcceptedOrder> {
  const startBy = await readStartBy(context.database.sql(tx));
  const input = { packageId, scope, itemId, sendBy: startBy.toISOString(), ...more };
  const workflowId = await acceptWorkflow(context, tx, request, {
    ...onSite(site.id),
    definition,
    input,
    action: null,
    startBy,
  });
  return { workflowId, surface: viewVendorSurface(listing, null) };
}

export const takeVendorSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) => readTimelines(context, await readSite(context, request), timeLimit(lookMs.before)),
    execute: async (tx: Tx, request, timelines) => {
      const { scope, item_id: itemId = '' } = request.body;
      const site = await holdSite(tx, request);
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseVendorSnapshot({ listing: timelines.listing, unfinished }, { scope, itemId });
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      return acceptOrder(context, tx, request, site, timelines, {
        definition: vendorTakeSnapshotWorkflow,
        scope,
        itemId,
        more: {},
      });
    },
    awaitOutcome: async (request, accepted) => awaitAcceptance(context, await readSite(context, request), accepted),
  }) satisfies AwaitHandlers<typeof takeSiteVendorSnapshotEndpoint, Tx, Timelines, AcceptedOrder>;

/** Decides by the live listing and the same rule as the restore, and changes nothing. */
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
      const timelines = await readTimelines(context, site, timeLimit(lookMs.before)).catch((error: unknown) => {
        if (error instanceof Problem) return error;
        throw error;
      });
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

/**
 * Compares the named point with the live listing and accepts the restore. Then waits for the vendor as {@link
 * awaitAcceptance} describes.
 */
export const restoreVendorSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) => readTimelines(context, await readSite(context, request), timeLimit(lookMs.before)),
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
