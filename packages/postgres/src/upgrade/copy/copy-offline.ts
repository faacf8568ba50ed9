import { z } from 'zod';
import { qualify } from '../../dump/list-tables';
import { customerTables } from '../check/customer-tables';
import { noteDone, planRows } from '../plan-store';
import { readRows, type Stage } from '../session';
import { copyRows } from './copy-rows';

const sizeSchema = z.object({ bytes: z.coerce.number() });
const sizeSql = 'select pg_catalog.pg_database_size(pg_catalog.current_database()) as bytes';

/**
 * Copies all rows from one server to the other, two tables at a time, while nobody writes. Tables that were copied
 * before a crash are left alone.
 */
export async function copyOffline(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
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
