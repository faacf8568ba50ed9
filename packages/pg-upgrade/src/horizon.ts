import type pg from 'pg';
import { z } from 'zod';
import { ownSchema } from './own-objects';
import { readRows } from './session';

const horizonSchema = z.object({ horizon: z.string() });

/** Up to where the large objects are level, kept with them on the target; null before the first time. */
export async function readHorizon(target: pg.ClientBase): Promise<string | null> {
  await target.query(`create table if not exists ${ownSchema}.horizon (horizon text not null)`);
  return (await readRows(target, horizonSchema, `select horizon from ${ownSchema}.horizon`))[0]?.horizon ?? null;
}

export async function writeHorizon(target: pg.ClientBase, horizon: string): Promise<void> {
  await target.query(`begin; delete from ${ownSchema}.horizon; insert into ${ownSchema}.horizon values (${Number(horizon)}); commit`);
}
