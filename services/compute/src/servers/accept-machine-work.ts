import type { ServerPowerState } from '@drydock/contracts/compute/compute-servers';
import { type Acceptance, type Asking, acceptWorkflow, followHeaders } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { holdMachine } from './server.store';
import { onServer, type Server, serverPath } from './server.types';
import { viewServer } from './server.view';

interface MachineWork {
  server: Server;
  /** The power state to show until the work has ended. */
  meanwhile: ServerPowerState;
}

/** Accepts work that stops or starts the server's machine, and locks it against other work. Resolves with the 202. */
export async function acceptMachineWork<Input>(
  context: HandlerContext,
  tx: Tx,
  request: Asking & { now: Date },
  { server, meanwhile, ...work }: MachineWork & Pick<Acceptance<Input>, 'definition' | 'input' | 'action'>,
) {
  const workflowId = await acceptWorkflow(context, tx, request, { ...onServer(server.id), ...work });
  await holdMachine(tx, server.id, meanwhile);
  const held = { ...server, operable: false, powerState: meanwhile };
  const headers = followHeaders(serverPath(server.id), workflowId);
  return { status: 202 as const, headers, body: viewServer(held, context.targets, request.now) };
}
