import { z } from 'zod';
import { qualify } from '../../dump/list-tables';
import { isRefresh } from '../../load/statement.rules';
import { readHorizon, writeHorizon } from '../horizon';
import { type FailedStatement, noteDone, planRows, runPart } from '../plan-store';
import { publish, subscribe, waitUntilCopied } from '../replication';
import { type Move, readRows, type Stage, withStage } from '../session';
import { copyRows } from './copy-rows';
import { customerTables } from './customer-tables';
import { copyLargeObjects } from './large-objects';
import { widenIdentities } from './replica-identity';

const sizeSchema = z.object({ bytes: z.coerce.number() });
const sizeSql = 'select pg_catalog.pg_database_size(pg_catalog.current_database()) as bytes';

/**
 * Copies all rows from one server to the other, two tables at a time, while nobody writes. Tables whose copy is
 * complete are skipped.
 */
async function copyOffline(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  const old = await stage.reader('old');
  const tables = await customerTables(old, stage.own);
  const tokens = await planRows(stage, tables.map(qualify));
  const left = tables.filter((table) => tokens.has(qualify(table)));
  const [size] = await readRows(old, sizeSchema, sizeSql);
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    onProgress(Math.min(1, bytes / Math.max(size?.bytes ?? 1, 1)));
  };
  const work = async (lane: number): Promise<void> => {
    for (let table = left.shift(); table !== undefined; table = left.shift()) {
      const { root } = table;
      const into = await stage.rowsLoader((root ?? table).owner, lane);
      const token = tokens.get(qualify(table)) ?? '';
      const note = () => noteDone(stage, into, token);
      await copyRows({ from: await stage.reader('old', lane), into }, table, { note, onBytes, root: root?.name });
    }
  };
  const outcomes = await Promise.allSettled([0, 1].map(work));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * Stage: copies every row, then makes indexes, foreign keys and triggers, fills materialised views, copies large
 * objects and runs ANALYZE. With replication the customer keeps writing. Offline, nobody may write from before this
 * stage until the upgrade ends; the caller makes sure of that. After a crash it continues where it was cut off. Throws
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
    // Postgres runs the customer's functions as the owner of the table here, and does not let them change to another
    // role.
    await keeper.query('analyze');
    move.progress?.(1);
  });
}

/** A materialised view whose query fails on the rows as they are stays empty. The comparison reports it. */
function passOverRefresh({ sql, error }: FailedStatement): void {
  if (!isRefresh({ outline: sql })) throw error;
}

async function copyLogical(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  // Must happen before anything is published: from then on Postgres refuses changes of rows without an identity.
  await widenIdentities(stage);
  await publish(stage);
  await subscribe(stage);
  await waitUntilCopied(stage, onProgress);
}
