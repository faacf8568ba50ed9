import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { type HandlerContext, ownerOf } from '../context';
import type { Tx } from '../database.store';
import { findServer, lockServer } from './server.store';
import type { Server } from './server.types';

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

/** The same, with the row locked until the transaction ends. */
export async function holdServer(tx: Tx, { caller, params }: AboutServer): Promise<Server> {
  return present(await lockServer(tx, ownerOf(caller), params.serverId));
}

function present(server: Server | null): Server {
  if (server === null) throw problem('server_not_found');
  return server;
}
