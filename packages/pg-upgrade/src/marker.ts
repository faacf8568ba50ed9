import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { ownSchema } from './own-objects';
import { UpgradeError } from './upgrade-error';

const pollMs = 2;

/**
 * Writes a row on the old server and waits until it is on the target: whatever was committed before it is there too. (The positions that servers report lag
 * behind by up to seconds.) Returns the milliseconds it took. Throws `not_caught_up` after `limitMs`.
 */
export async function sendMarker(old: pg.ClientBase, target: pg.ClientBase, limitMs: number): Promise<number> {
  const id = randomUUID();
  const startedMs = performance.now();
  await old.query(`insert into ${ownSchema}.marker (id) values ($1)`, [id]);
  for (;;) {
    const { rowCount } = await target.query(`select from ${ownSchema}.marker where id = $1`, [id]);
    const tookMs = performance.now() - startedMs;
    if (rowCount === 1) return tookMs;
    if (tookMs > limitMs) throw new UpgradeError('not_caught_up', `the target is more than ${limitMs} ms behind`);
    await wait(pollMs);
  }
}
