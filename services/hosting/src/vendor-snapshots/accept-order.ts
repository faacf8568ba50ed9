import type { VendorScope } from '@drydock/contracts/hosting/vendor-snapshots';
import { type Asking, acceptWorkflow, readStartBy } from '@drydock/workflow/http/accept-workflow';
import type { WorkflowStart } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import type { Site } from '../sites/site.types';
import { onSite } from '../sites/site-names';
import type { AcceptedOrder } from './await-acceptance';
import type { Timelines } from './read-timelines';
import { viewVendorSurface } from './vendor-snapshot.view';

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
