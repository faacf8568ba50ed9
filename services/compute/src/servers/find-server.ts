import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { findServer, lockServer } from './server.store';
import { ownerOf, type Server, serverSubject } from './server.types';

interface AboutServer {
  caller: Caller;
  params: { serverId: string };
}

/** The caller's server. Throws the same 404 in every other case. */
export async function readServer(
  context: Pick<HandlerContext, 'database'>,
  { caller, params }: AboutServer,
): Promise<Server> {
  return present(await findServer(context.database.pool, ownerOf(caller), params.serverId));
}

/** Reads the caller's server as {@link readServer} does, and locks its row until the transaction ends. */
export async function holdServer(tx: Tx, { caller, params }: AboutServer): Promise<Server> {
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
