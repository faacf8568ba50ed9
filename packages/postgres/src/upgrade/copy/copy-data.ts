import { isRefresh } from '../../load/statement.rules';
import { widenIdentities } from '../check/replica-identity';
import { readHorizon, writeHorizon } from '../horizon';
import { type FailedStatement, runPart } from '../plan-store';
import { publish, subscribe, waitUntilCopied } from '../replication';
import { type Move, type Stage, withStage } from '../session';
import { copyOffline } from './copy-offline';
import { copyLargeObjects } from './large-objects';

/**
 * Stage: every row, then indexes, foreign keys, triggers, contents of materialised views, large objects and ANALYZE. By
 * replication the customer writes on; offline nobody may write from before this stage until the end of the upgrade,
 * which the caller sees to. Goes on where a crash has cut it. Throws UpgradeError `replication_failed`,
 * `statement_failed`, `copy_failed`, and TransferError `copy_failed` for rows that the new version refuses.
 */
export async function copyData(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const report = (from: number, to: number) => (fraction: number) => move.progress?.(from + (to - from) * fraction);
    if (move.path === 'offline') await copyOffline(stage, report(0, 0.7));
    else await copyLogical(stage, report(0, 0.7));
    await runPart(stage, 'keys');
    await runPart(stage, 'indexes', { lanes: 2, onDone: report(0.7, 0.9) });
    await runPart(stage, 'rest', { onFailure: passOverRefresh });
    const keeper = await stage.keeper();
    await writeHorizon(stage, await copyLargeObjects(await stage.reader('old'), keeper, await readHorizon(stage)));
    // Postgres runs the customer's functions as the table's owner here, and lets them become nobody else.
    await keeper.query('analyze');
    move.progress?.(1);
  });
}

/**
 * A materialized view whose query fails over the rows as they are stays without its contents, which the comparison
 * tells.
 */
function passOverRefresh({ sql, error }: FailedStatement): void {
  if (!isRefresh({ outline: sql })) throw error;
}

async function copyLogical(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  // Before anything is published: from then on a change of a row without identity would be refused.
  await widenIdentities(stage);
  await publish(stage);
  await subscribe(stage);
  await waitUntilCopied(stage, onProgress);
}
