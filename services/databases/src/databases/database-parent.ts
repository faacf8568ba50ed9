import type { WorkflowParent } from '@drydock/workflow/http/workflow-endpoints';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { databaseSubject } from './database-names';
import { readDatabase } from './find-database';

export const databaseParent = (context: HandlerContext): WorkflowParent<Tx, 'databaseId'> => ({
  context,
  param: 'databaseId',
  subjectOf: databaseSubject,
  assertThere: (caller, databaseId) => readDatabase(context, { caller, params: { databaseId } }),
});
