import type { WorkflowHome } from '@drydock/workflow/http/workflow-endpoints';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { readServer } from './find-server';
import { serverPath, serverSubject } from './server-names';

export const serverHome = (context: HandlerContext): WorkflowHome<Tx, 'serverId'> => ({
  context,
  param: 'serverId',
  subjectOf: serverSubject,
  pathOf: serverPath,
  assertThere: (caller, serverId) => readServer(context, { caller, params: { serverId } }),
});
