import type { WorkflowParent } from '@drydock/workflow/http/workflow-endpoints';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { readServer } from './find-server';
import { serverSubject } from './server-names';

export const serverParent = (context: HandlerContext): WorkflowParent<Tx, 'serverId'> => ({
  context,
  param: 'serverId',
  subjectOf: serverSubject,
  assertThere: (caller, serverId) => readServer(context, { caller, params: { serverId } }),
});
