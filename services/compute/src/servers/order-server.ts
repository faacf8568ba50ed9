import type { orderComputeServer as endpoint } from '@drydock/contracts/compute/compute-servers';
import { problem } from '@drydock/contracts/platform/problem';
import { assertWithinQuota, changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import { acceptWorkflow, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { type Offer, targetOf } from '../providers/compute-provider';
import { orderServerWorkflow } from './order-server.workflow';
import { insertServer } from './server.store';
import { onServer, ownerOf, serverPath } from './server.types';
import { viewServer } from './server-record';

export const orderServer = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const {
        name,
        deploy_target: deployTarget,
        plan_code: planCode = '',
        image,
        zone,
        term_months: termMonths = null,
        ssh_keys: sshKeys = [],
      } = request.body;
      const owner = ownerOf(request.caller);
      const target = targetOf(context.targets, { ...owner, deployTarget });
      if (target === undefined)
        throw problem('deploy_target_unknown', { extra: { deploy_targets: [...context.targets[owner.mode].keys()] } });
      if (sshKeys.length > 0 && !target.provider.capabilities.includes('compute:ssh_keys'))
        throw problem('ssh_keys_unsupported');
      const { spec, price } = sizeOf(target.offer, request.body);
      await assertWithinQuota(context.database.sql(tx), context.quota, owner);
      const id = uuidv7();
      const isSubscribed = termMonths !== null && owner.mode === 'live';
      const server = await insertServer(tx, {
        ...{ id, ...owner, name, deployTarget, planCode, spec, zone, image, termMonths },
        provider: target.provider.provider,
        status: 'provisioning',
        // The images of all providers have this user.
        loginUser: 'root',
        hasSshKeys: sshKeys.length > 0,
        currency: target.offer.currency,
        amountMinor: termMonths === null ? price.hourMinor : price.monthMinor,
        subscriptionId: isSubscribed ? uuidv7() : null,
        metadata: changeMetadata({}, request.body.metadata),
      });
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onServer(id),
        definition: orderServerWorkflow,
        // A worker of the release before knows no `sshKeys`, so an order without keys does not have the field.
        input: { deployTarget, spec, image, zone, ...(sshKeys.length === 0 ? {} : { sshKeys }) },
        action: 'server.order',
        id,
      });
      return {
        status: 202,
        headers: followHeaders(serverPath(id), workflowId),
        body: viewServer(server, context.targets, request.now),
      };
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, undefined>;

/** The size that was ordered. Throws `size_not_offered`, which names the sizes on offer. */
function sizeOf(
  { plans, prices }: Offer,
  { plan_code, spec: asked }: { plan_code?: string | undefined; spec?: string | undefined },
) {
  const spec = plan_code === undefined ? asked : plans.get(plan_code);
  const price = spec === undefined ? undefined : prices.get(spec);
  if (spec === undefined || price === undefined)
    throw problem('size_not_offered', { extra: { plans: [...plans.keys()], specs: [...prices.keys()] } });
  return { spec, price };
}
