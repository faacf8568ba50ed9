import { keepLooking, type Looking } from '@drydock/service/process';
import type { Log } from '@drydock/service/telemetry';
import type { WorkflowRun } from '@drydock/workflow/definition';
import { findUnfinished } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import type { DatabasesDatabase } from '../context/database.store';
import { changeStatus } from '../databases/database.store';
import { databaseResourceKey } from '../databases/database.types';
import type { DatabaseReader, HostedDatabase } from '../providers/database-provider';
import { beginEndOfUpgrade } from './end-abandoned-upgrade.workflow';
import { retireScheduleOf } from './retire-old-instance.workflow';

interface Looked {
  database: DatabasesDatabase;
  provider: Pick<DatabaseReader, 'describe'>;
}

/** The most databases that one line of the log names. */
const namedMax = 20;

const pauseMs = { afterLook: 3_600_000, afterFailure: 10_000 };

/**
 * Ends the upgrades and restores that the agent has begun and that Drydock has no record of. It searches for them when
 * the worker starts, because Drydock's own database may just have been restored to an earlier moment. It repeats the
 * search every hour, and ten seconds after a failure.
 */
export function keepEndingForgottenMoves(looked: Looked, log: Log): Looking {
  return keepLooking(log, 'forgotten moves', pauseMs, async (signal) => {
    const { ended, failed } = await endForgottenMoves(looked, signal);
    if (ended > 0) log.warn({ forgotten_moves: ended }, 'moves of databases that are on no record are ended');
    const [first] = failed;
    if (first === undefined) return;
    // One line for all of them, because an agent that is down fails the look at every database.
    const database_ids = failed.slice(0, namedMax).map(({ databaseId }) => databaseId);
    log.warn({ err: first.error, failed: failed.length, database_ids }, 'databases could not be looked at');
    throw first.error;
  });
}

interface Available {
  id: string;
  org_id: string;
  mode: 'live' | 'sandbox';
  engine_version: string;
  is_retired_later: boolean;
}

/**
 * Whether the agent has begun or completed an upgrade or a restore that Drydock has no record of. The caller must only
 * ask about a database without an unfinished workflow.
 */
const hasForgotten = ({ engine_version, is_retired_later }: Available, { major, upgrade }: HostedDatabase): boolean =>
  String(major) !== engine_version || (upgrade !== null && (upgrade.phase !== 'finished' || !is_retired_later));

const availableSql = `
  SELECT id, org_id, mode::text AS mode, engine_version,
    EXISTS (SELECT FROM workflow_schedule WHERE name = $1 || managed_databases.id) AS is_retired_later
  FROM managed_databases WHERE status = 'available' AND id > $2::uuid
    AND NOT EXISTS (SELECT FROM workflow WHERE resource_key = $3 || managed_databases.id
      AND status IN ('queued', 'running', 'needs_attention'))
  ORDER BY id LIMIT 500`;

interface Ended {
  /** The number of started workflows. */
  ended: number;
  /** The databases that could not be looked at, such as one whose record the agent cannot read. */
  failed: { databaseId: string; error: unknown }[];
}

/**
 * Starts a workflow for each upgrade or restore that Drydock has no record of. Nothing else would end it, and the
 * customer may be unable to write. One database that fails does not keep the others from their look.
 */
async function endForgottenMoves({ database, provider }: Looked, signal: AbortSignal): Promise<Ended> {
  const result: Ended = { ended: 0, failed: [] };
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const page = await database
      .sql()
      .query<Available>(availableSql, [retireScheduleOf(''), after, databaseResourceKey('')]);
    for (const found of page) {
      signal.throwIfAborted();
      const { id: databaseId, org_id: orgId, mode } = found;
      try {
        const hosted = await provider.describe({ databaseId, orgId, mode }, signal);
        if (hosted !== null && hasForgotten(found, hosted)) result.ended += await beginEnd(database, found, hosted);
      } catch (error) {
        signal.throwIfAborted();
        result.failed.push({ databaseId, error });
      }
    }
    const last = page.at(-1);
    if (last === undefined) return result;
    after = last.id;
  }
}

async function beginEnd(
  database: DatabasesDatabase,
  { id, org_id: orgId, mode }: Available,
  { upgrade }: HostedDatabase,
): Promise<number> {
  return database.transaction(async (tx) => {
    const sql = database.sql(tx);
    // The row stays locked until the workflow that ends the upgrade is accepted. A request that already holds the lock
    // finishes first.
    await sql.query('SELECT 1 FROM managed_databases WHERE id = $1::uuid FOR UPDATE', [id]);
    if ((await findUnfinished(sql, databaseResourceKey(id))) !== null) return 0;
    const run: WorkflowRun<unknown> = {
      // Only the agent knows the id of the upgrade or restore. If the agent has none under way, only the version on
      // record is wrong. Any id will do then, because the agent has nothing to end.
      workflowId: upgrade?.upgradeId ?? uuidv7(),
      orgId,
      mode,
      subject: { type: 'database', id },
      input: {},
      actorKeyId: null,
      requestId: uuidv7(),
    };
    await changeStatus(tx, id, 'provisioning');
    await beginEndOfUpgrade(sql, run);
    return 1;
  });
}
