import type {
  deleteDatabase as deleteDatabaseEndpoint,
  preflightDatabaseDeletion,
} from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { refusalByWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertFree, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { countCompleted } from '../backups/backup.store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { changeStatus } from '../databases/database.store';
import { databasePath, databaseResourceKey, onDatabase } from '../databases/database.types';
import { holdDatabase, readDatabase, viewDatabase } from '../databases/database-record';
import { deleteDatabaseWorkflow } from './delete-database.workflow';

/** The preflight of a deletion answers with the refusal that the deletion would get, and changes nothing. */
export const preflightDeletion = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { database } = context;
      const managed = await readDatabase(context, request);
      const refusal = refusalByWorkflow(await findUnfinished(database.sql(), databaseResourceKey(managed.id)));
      const backups = await countCompleted(database.pool, managed.id);
      const detail =
        `Backups that are deleted with it: ${backups}. ` +
        `A database made from one of them before the deletion stays.`;
      const findings: Preflight['findings'] =
        backups > 0 ? [{ level: 'WARNING', code: 'backups_deleted', detail }] : [];
      const body = {
        would: `Delete ${managed.label} with everything in it and all of its backups, for good`,
        resource: databasePath(managed.id),
        point: null,
        space: null,
        refusal: refusal === null ? null : problemOf(refusal).body(request.requestId),
        findings,
        undo: false as const,
      };
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof preflightDatabaseDeletion>;

export const deleteDatabase = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const managed = await holdDatabase(tx, request);
      await assertFree(context.database.sql(tx), databaseResourceKey(managed.id));
      const acceptance = {
        ...onDatabase(managed.id),
        definition: deleteDatabaseWorkflow,
        input: {},
        action: 'database.delete',
      };
      const workflowId = await acceptWorkflow(context, tx, request, acceptance);
      await changeStatus(tx, managed.id, 'deleting');
      const body = viewDatabase({ ...managed, status: 'deleting' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof deleteDatabaseEndpoint, Tx, undefined>;
