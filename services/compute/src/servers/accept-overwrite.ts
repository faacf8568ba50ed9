import { type Acceptance, type Asking, acceptWorkflow, followHeaders } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { holdMachine } from './server.store';
import type { Server } from './server.types';
import { viewServer } from './server.view';
import { onServer, serverPath } from './server-names';

/** Accepts work that overwrites the server's disk: its machine cannot be used from here on. Resolves with the 202. */
export async function acceptOverwrite<Input>(
  context: HandlerContext,
  tx: Tx,
  request: Asking & { now: Date },
  { server, ...work }: { server: Server } & Pick<Acceptance<Input>, 'definition' | 'input' | 'action'>,
) {
  const workflowId = await acceptWorkflow(context, tx, request, { ...onServer(server.id), ...work });
  await holdMachine(tx, server.id);
  const held = { ...server, operable: false, powerState: 'rebooting' } as const;
  const headers = followHeaders(serverPath(server.id), workflowId);
  return { status: 202 as const, headers, body: viewServer(held, context.targets, request.now) };
}
