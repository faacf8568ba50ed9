import {
  type ComputeServerView,
  computeServerSchema,
  type getComputeServer,
  listComputeServers,
  type updateComputeServer as updateComputeServerEndpoint,
} from '@drydock/contracts/compute/compute-servers';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { audit } from '@drydock/service/effects';
import { changeMetadata, type ExecuteHandlers, listFilter, type ReadHandlers } from '@drydock/service/http';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { type ComputeReader, type Targets, targetOf } from '../providers/compute-provider';
import { billingOf } from './server.rules';
import { describeServer, findServer, listServers as listRows, lockServer } from './server.store';
import { ownerOf, type Server, serverPath, serverSubject } from './server.types';

interface AboutServer {
  caller: Caller;
  params: { serverId: string };
}

/** The caller's server. Throws 404 if it does not exist or belongs to somebody else. */
export async function readServer(
  context: Pick<HandlerContext, 'database'>,
  { caller, params }: AboutServer,
): Promise<Server> {
  return present(await findServer(context.database.pool, ownerOf(caller), params.serverId));
}

/** Reads the caller's server as {@link readServer} does, and locks its row until the transaction ends. */
export async function readLockedServer(tx: Tx, { caller, params }: AboutServer): Promise<Server> {
  return present(await lockServer(tx, ownerOf(caller), params.serverId));
}

function present(server: Server | null): Server {
  if (server === null) throw problem('server_not_found');
  return server;
}

export const serverParent = (context: HandlerContext): WorkflowParent<Tx, 'serverId'> => ({
  context,
  param: 'serverId',
  subjectOf: serverSubject,
  assertThere: (caller, serverId) => readServer(context, { caller, params: { serverId } }),
});

const { blueprint: blueprintSchema, cluster_role: clusterRoleSchema } = computeServerSchema.shape;

/**
 * The server as the API shows it. The capabilities come from the driver of the server's target. A server whose target
 * is not configured any more has no capabilities.
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

export const getServer = (context: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: viewServer(await readServer(context, request), context.targets, request.now),
    }),
  }) satisfies ReadHandlers<typeof getComputeServer>;

export const listServers = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database, targets } = context;
      const binding = { list: listComputeServers.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const view = (server: (typeof rows)[number]) => viewServer(server, targets, now);
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view }) };
    },
  }) satisfies ReadHandlers<typeof listComputeServers>;

/**
 * Changes the name and metadata of the server. The machine keeps its own name at the provider. The row is locked, so
 * that two simultaneous changes both take effect.
 */
export const updateServer = ({ database, targets }: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller, now } = request;
      const held = await readLockedServer(tx, request);
      const { id, name, metadata } = held;
      await request.assertMatch(() => viewServer(held, targets, now));
      const server = await describeServer(tx, id, {
        name: body.name ?? name,
        metadata: changeMetadata(metadata, body.metadata),
      });
      const { orgId, mode, keyId: actorKeyId } = caller;
      await audit(database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'server.update',
        target: serverPath(id),
        workflowId: null,
      });
      return { status: 200, body: viewServer(server, targets, now) };
    },
  }) satisfies ExecuteHandlers<typeof updateComputeServerEndpoint, Tx, undefined>;
