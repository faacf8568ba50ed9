import type { preflightDatabaseBackupRestore as endpoint } from '@drydock/contracts/databases/database-backups';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { findBackup } from '../backups/backup.store';
import type { HandlerContext } from '../context';
import { databaseResourceKey } from '../databases/database-names';
import { readDatabase } from '../databases/find-database';
import { viewPreflight } from './preflight-restore.view';
import { refuseRestore } from './restore.rules';

/** What a restore would do, with the very rule that it asks. Reads only; a host that does not answer is a finding, not a failure. */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, params, requestId } = request;
      const { database, provider } = context;
      const managed = await readDatabase(context, request);
      const backup = params.backupId === '' ? null : await findBackup(database.pool, managed.id, params.backupId);
      const unfinished = await findUnfinished(database.sql(), databaseResourceKey(managed.id));
      const refusal = refuseRestore({ managed, unfinished }, backup);
      const { id: databaseId, orgId, mode } = managed;
      const hosted = await provider.describe({ databaseId, orgId, mode }).catch(() => null);
      const facts = { managed, backup, freeBytes: hosted?.freeBytes ?? null, now };
      return { status: 200, body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId)) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
