import type { preflightDatabaseDeletion as endpoint } from '@drydock/contracts/databases/databases';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import type { ReadHandlers } from '@drydock/service/http/route';
import { refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { countCompleted } from '../backups/backup.store';
import type { HandlerContext } from '../context';
import { databasePath, databaseResourceKey } from './database-names';
import { readDatabase } from './find-database';

/** The preflight of a deletion: asks the same rule and changes nothing. */
export const preflightDeletion = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { database } = context;
      const managed = await readDatabase(context, request);
      const refusal = refusalByWorkflow(await findUnfinished(database.sql(), databaseResourceKey(managed.id)));
      const backups = await countCompleted(database.pool, managed.id);
      const detail = `Backups that are deleted with it: ${backups}. A database made from one of them before the deletion stays.`;
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
  }) satisfies ReadHandlers<typeof endpoint>;
