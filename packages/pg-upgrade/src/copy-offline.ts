import { qualify } from '@drydock/pg-transfer/list-tables';
import { z } from 'zod';
import { copyRows, customerTables } from './copy-rows';
import { ownSchema } from './own-objects';
import { type Move, openStageSession, readRows, type Stage, withDatabase } from './session';

const copiedSchema = z.object({ name: z.string() });
const sizeSchema = z.object({ bytes: z.coerce.number() });
const sizeSql = 'select pg_catalog.pg_database_size(pg_catalog.current_database()) as bytes';

/** All rows straight from one server to the other, two tables at a time, while nobody writes. Tables that are over already are left alone. */
export async function copyOffline(move: Move, { old, target }: Stage, onProgress: (fraction: number) => void): Promise<void> {
  const copied = new Set((await readRows(target, copiedSchema, `select name from ${ownSchema}.copied`)).map(({ name }) => name));
  const left = (await customerTables(old)).filter((table) => !copied.has(qualify(table)));
  const [size] = await readRows(old, sizeSchema, sizeSql);
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    onProgress(Math.min(1, bytes / Math.max(size?.bytes ?? 1, 1)));
  };
  const work = async (stage: Stage): Promise<void> => {
    for (let table = left.shift(); table !== undefined; table = left.shift()) {
      const name = qualify(table);
      const note = () => stage.target.query(`insert into ${ownSchema}.copied (name) values ($1)`, [name]);
      await copyRows(stage.old, stage.target, table, { note, onBytes });
    }
  };
  const second = await Promise.all(
    [move.oldUrl, move.targetUrl].map((url) => openStageSession(withDatabase(url, move.databaseName), move)),
  );
  try {
    const [secondOld, secondTarget] = second;
    const stages = secondOld && secondTarget ? [{ old: secondOld.client, target: secondTarget.client }] : [];
    const outcomes = await Promise.allSettled([{ old, target }, ...stages].map(work));
    const failed = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
  } finally {
    await Promise.all(second.map((session) => session.close()));
  }
}
