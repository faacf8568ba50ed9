import { isRefresh } from '../../load/statement.rules';
import { widenIdentities } from '../check/replica-identity';
import { readHorizon, writeHorizon } from '../horizon';
import { type FailedStatement, runPart } from '../plan-store';
import { publish, subscribe, waitUntilCopied } from '../replication';
import { type Move, type Stage, withStage } from '../session';
import { copyOffline } from './copy-offline';
import { copyLargeObjects } from './large-objects';

/**
 * Stage: copies every row, then indexes, foreign keys, triggers, contents of materialised views and large objects, and
 * runs ANALYZE. With replication the customer continues to write. On the offline path the caller makes sure that nobody
 * writes from before this stage until the end of the upgrade. After a crash it continues where it stopped. Throws
 * UpgradeError `replication_failed`, `statement_failed`, `copy_failed`, and TransferError `copy_failed` for rows that
 * the new version refuses.
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
    // ANALYZE runs the customer's functions as the table's owner, who can become no other role there.
    await keeper.query('analyze');
    move.progress?.(1);
  });
}

/**
 * Ignores the failure of a materialized view whose query fails over the present rows. The view stays empty, and the
 * comparison reports it.
 */
function passOverRefresh({ sql, error }: FailedStatement): void {
  if (!isRefresh({ outline: sql })) throw error;
}

async function copyLogical(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  // Identities are widened before anything is published, because from then on Postgres refuses a change of a row
  // without identity.
  await widenIdentities(stage);
  await publish(stage);
  await subscribe(stage);
  await waitUntilCopied(stage, onProgress);
}
