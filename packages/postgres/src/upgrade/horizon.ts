import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { readRows, type Stage } from './session';
import { UpgradeError } from './upgrade-error';

const pollMs = 2;

/**
 * Writes a row on the old server and waits until it is on the target: everything that was committed before it is there
 * too. (The positions that servers report lag by up to seconds.) Returns the milliseconds that it took. Throws
 * `not_caught_up` after `limitMs`.
 */
export async function sendMarker(stage: Stage, limitMs: number): Promise<number> {
  const marker = `${pg.escapeIdentifier(stage.own.schema)}.marker`;
  const [publisher, keeper] = [await stage.publisher(), await stage.keeper()];
  const id = randomUUID();
  const startedMs = performance.now();
  await publisher.query(`insert into ${marker} (id) values ($1)`, [id]);
  for (;;) {
    const { rowCount } = await keeper.query(`select from ${marker} where id = $1`, [id]);
    const tookMs = performance.now() - startedMs;
    if (rowCount === 1) return tookMs;
    if (tookMs > limitMs) throw new UpgradeError('not_caught_up', `the target is more than ${limitMs} ms behind`);
    await wait(pollMs);
  }
}

const horizonSchema = z.object({ horizon: z.string() });

/**
 * Reads the horizon up to which the large objects are copied. It is kept with them on the target; null before the first
 * copy.
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
