import { z } from 'zod';
import { readRows, type Stage } from './session';

const horizonSchema = z.object({ horizon: z.string() });

/**
 * The position up to which large objects are copied. It is stored with them on the target; null before the first copy.
 */
export async function readHorizon(stage: Stage): Promise<string | null> {
  return (
    (await readRows(await stage.keeper(), horizonSchema, `select horizon from ${stage.own.schema}.horizon`))[0]
      ?.horizon ?? null
  );
}

export async function writeHorizon(stage: Stage, horizon: string): Promise<void> {
  const { schema } = stage.own;
  const keeper = await stage.keeper();
  await keeper.query('begin');
  await keeper.query(`delete from ${schema}.horizon`);
  await keeper.query(`insert into ${schema}.horizon values ($1)`, [horizon]);
  await keeper.query('commit');
}
