import type { preflightDatabaseUpgrade as endpoint } from '@drydock/contracts/databases/database-upgrades';
import { type Major, majorOf } from '@drydock/contracts/databases/major';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import { problemOf } from '@drydock/workflow/http/accept-workflow';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import { findNewestBackup } from '../backups/backup.store';
import { versionsOf } from '../catalogue/catalogue';
import { majorsFor } from '../catalogue/get-catalogue';
import type { HandlerContext } from '../context';
import type { ManagedDatabase } from '../databases/database.types';
import { databaseResourceKey } from '../databases/database-names';
import { readDatabase } from '../databases/find-database';
import { DatabaseProviderError, type UpgradePlan } from '../providers/database-provider';
import { viewPreflight } from './preflight-upgrade.view';
import { refuseUpgrade } from './upgrade.rules';

/** The preflight of an upgrade: asks the same rules, and the instance for its findings. Changes nothing. */
export const preflightUpgrade = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, requestId } = request;
      const { pool } = context.database;
      const managed = await readDatabase(context, request);
      const unfinished = await findUnfinished(context.database.sql(), databaseResourceKey(managed.id));
      const majors = await majorsFor(context, { engine: managed.engine, engine_version: body.engine_version });
      const world = { managed, unfinished, versions: versionsOf(managed.engine, majors) };
      const refusal = refuseUpgrade(world, body.engine_version);
      const isTarget = refusal === null || refusal.code === 'never_backed_up';
      const plan = isTarget ? await planOf(context, managed, majorOf(body.engine_version)) : null;
      const backup = await findNewestBackup(pool, managed.id);
      const facts = { managed, target: body.engine_version, plan, backup, now };
      return { status: 200, body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId)) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

/** Null if there is no instance to ask. */
async function planOf(
  { provider }: HandlerContext,
  { id, orgId, mode }: ManagedDatabase,
  toMajor: Major,
): Promise<UpgradePlan | null> {
  try {
    return await provider.planUpgrade({ databaseId: id, orgId, mode }, toMajor);
  } catch (error) {
    if (error instanceof DatabaseProviderError && error.refusal === 'unknown_database') return null;
    throw problem('dependency_unavailable', {
      extra: { dependency: 'database-host' },
      retryAfterSeconds: 30,
      cause: error,
    });
  }
}
