import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { Stage } from './session';
import { UpgradeError } from './upgrade-error';

const pollMs = 2;

/**
 * Writes a row on the old server and waits until it is on the target: whatever was committed before it is there too.
 * (The positions that servers report lag behind by up to seconds.) Returns the milliseconds it took. Throws
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
