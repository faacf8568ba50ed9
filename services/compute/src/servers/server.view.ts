import { type ComputeServerView, computeServerSchema } from '@drydock/contracts/compute/compute-servers';
import type { ComputeReader } from '../providers/compute-provider';
import { type Targets, targetOf } from '../providers/targets';
import { billingOf } from './billing.rules';
import type { Server } from './server.types';

const { blueprint: blueprintSchema, cluster_role: clusterRoleSchema } = computeServerSchema.shape;

/**
 * ComputeServer of interface.md 2.6, extended. The capabilities are the driver's: a range that is not configured any
 * more has none.
 */
export function viewServer(
  server: Server,
  targets: Targets<Pick<ComputeReader, 'capabilities'>>,
  now: Date,
): ComputeServerView {
  return {
    id: server.id,
    name: server.name,
    deploy_target: server.deployTarget,
    plan_code: server.planCode,
    provider: server.provider,
    spec: server.spec,
    zone: server.zone,
    status: server.status,
    message: server.message,
    vendor_status: server.vendorStatus,
    power_state: server.powerState,
    addresses: server.addresses,
    optimisation: server.optimisation,
    term_months: server.termMonths,
    renews_at: null,
    metadata: server.metadata,
    created_at: server.createdAt.toISOString(),
    operable: server.operable,
    image: server.image,
    suspended: server.suspended,
    suspension_reason: server.suspensionReason,
    capabilities: [...(targetOf(targets, server)?.provider.capabilities ?? [])],
    billing: billingOf(server, now),
    login_user: server.loginUser,
    blueprint: blueprintSchema.parse(server.blueprint),
    cluster_id: server.clusterId,
    cluster_role: clusterRoleSchema.parse(server.clusterRole),
  };
}
