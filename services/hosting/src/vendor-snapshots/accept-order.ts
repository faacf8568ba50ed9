import type { VendorScope, VendorSnapshotSurface } from '@drydock/contracts/hosting/vendor-snapshots';
import { problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import { type Asking, acceptWorkflow, followHeaders, readStartBy, startDecidedMs } from '@drydock/workflow/http';
import { findUnfinished, type WorkflowStart, waitForStep } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { onSite, type Site, sitePath, siteResourceKey } from '../sites/site.types';
import { lookMs, readTimelines, type Timelines, vendorUnavailable } from './read-timelines';
import { withdrawOrder } from './vendor-order.store';
import { amendByWork, viewVendorSurface } from './vendor-snapshot.view';

/**
 * The state when the order was committed, before the vendor was asked. JSON, because it must survive a crash of this
 * process.
 */
export interface AcceptedOrder {
  workflowId: string;
  /** The surface at that time; it is shown if the vendor does not answer a second time. */
  surface: VendorSnapshotSurface;
}

/**
 * Waits for the vendor's answer to an order, outside any transaction. Resolves with the 202 once the vendor has
 * accepted it, or once it was sent and only the answer is missing. Throws the vendor's refusal, or 503 if the order was
 * not sent and will not be.
 */
export async function awaitAcceptance(context: HandlerContext, site: Site, { workflowId, surface }: AcceptedOrder) {
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
  return readTimelines(context, site, AbortSignal.timeout(lookMs.after)).then(
    ({ listing }) => viewVendorSurface(listing, unfinished),
    () => amendByWork(before, unfinished),
  );
}

interface OrderToAccept {
  definition: NonNullable<WorkflowStart['definition']>;
  scope: VendorScope;
  itemId: string;
  /** The fields that this kind of order adds to the workflow's input. */
  more: object;
}

/** Commits an order that nobody has sent yet. The step that sees it accepted writes the audit log. */
export async function acceptOrder(
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
