import { copyOffline } from './copy-offline';
import { readHorizon, writeHorizon } from './horizon';
import { copyLargeObjects } from './large-objects';
import { runPart } from './plan-store';
import { widenIdentities } from './replica-identity';
import { publish, subscribe, waitUntilCopied } from './replication';
import { type Move, openStageSession, type Stage, withDatabase, withStage } from './session';

/** Building an index goes by this setting; two are built at a time. */
const workMemory = "set maintenance_work_mem = '128MB'";

/**
 * Stage: every row, then indexes, foreign keys, triggers, contents of materialised views, large objects and ANALYZE. By replication the customer writes
 * on; offline nobody may write from before this stage until the end of the upgrade, which the caller sees to. Goes on where a crash has cut it.
 * Throws UpgradeError `replication_failed`, `statement_failed`, `copy_failed`.
 */
export async function copyData(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const report = (from: number, to: number) => (fraction: number) => move.progress?.(from + (to - from) * fraction);
    if (move.path === 'offline') await copyOffline(move, stage, report(0, 0.7));
    else await copyLogical(move, stage, report(0, 0.7));
    const second = await openStageSession(withDatabase(move.targetUrl, move.databaseName), move);
    try {
      await finishSchema(stage, second.client, report(0.7, 0.9));
    } finally {
      await second.close();
    }
    await writeHorizon(stage.target, await copyLargeObjects(stage.old, stage.target, await readHorizon(stage.target)));
    await stage.target.query('analyze');
    move.progress?.(1);
  });
}

async function copyLogical(move: Move, { old, target }: Stage, onProgress: (fraction: number) => void): Promise<void> {
  // Before anything is published: from then on a change of a row without identity would be refused.
  await widenIdentities(old);
  await publish(old);
  await subscribe(old, target, move.oldUrl, move.databaseName);
  await waitUntilCopied(target, onProgress);
}

async function finishSchema({ target }: Stage, second: Stage['target'], onProgress: (fraction: number) => void): Promise<void> {
  for (const client of [target, second]) await client.query(workMemory);
  await runPart([target], 'keys');
  await runPart([target, second], 'indexes', onProgress);
  await runPart([target], 'rest');
  await target.query('reset maintenance_work_mem');
}
