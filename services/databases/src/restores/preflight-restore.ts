import type { preflightDatabaseBackupRestore as endpoint } from '@drydock/contracts/databases/database-backups';
import { majorOf } from '@drydock/contracts/databases/major';
import type { Finding } from '@drydock/contracts/platform/preflight';
import type { HandlerRequest, ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { findBackup } from '../backups/backup.store';
import type { DatabaseBackup } from '../backups/backup.types';
import type { HandlerContext } from '../context';
import type { ManagedDatabase } from '../databases/database.types';
import { databaseResourceKey } from '../databases/database-names';
import { readDatabase } from '../databases/find-database';
import { viewPreflight } from './preflight-restore.view';
import { refuseRestore } from './restore.rules';
import { suffices, tryBackup } from './try-backup.workflow';

/**
 * The preflight of a restore: asks the same rule and leaves the database as it is. A backup without a proof on record
 * is loaded on trial, beside the database. A host that does not answer is a finding, not a failure.
 */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, params, requestId } = request;
      const { database, provider } = context;
      const managed = await readDatabase(context, request);
      const readBackup = async () =>
        params.backupId === '' ? null : findBackup(database.pool, managed.id, params.backupId);
      const trial = await tryIfNeeded(context, request, managed, await readBackup());
      const backup = await readBackup();
      const unfinished = await findUnfinished(database.sql(), databaseResourceKey(managed.id));
      const refusal = refuseRestore({ managed, unfinished }, backup);
      const { id: databaseId, orgId, mode } = managed;
      const hosted = await provider.describe({ databaseId, orgId, mode }).catch(() => null);
      const facts = { managed, backup, freeBytes: hosted?.freeBytes ?? null, trial, now };
      return { status: 200, body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId)) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

/** Null if nothing can be restored, or if the record already has enough. */
async function tryIfNeeded(
  context: HandlerContext,
  request: Pick<HandlerRequest<typeof endpoint>, 'caller' | 'requestId' | 'now'>,
  managed: ManagedDatabase,
  backup: DatabaseBackup | null,
): Promise<Finding | null> {
  if (backup === null || refuseRestore({ managed, unfinished: null }, backup) !== null) return null;
  if (suffices(backup.proof, majorOf(managed.engineVersion), request.now)) return null;
  return tryBackup(context, request, managed, backup);
}
