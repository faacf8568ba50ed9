import { setTimeout as wait } from 'node:timers/promises';
import { faultpoint } from '@drydock/process/faultpoint';
import { classifyDatabaseError } from '../database/database-error';
import type { Database } from '../database/sql';

const attemptsMax = 3;
const backoffMsMax = 30;

/**
 * Runs `work` in one transaction, up to three times if Postgres reports a serialization failure or deadlock: everything
 * was rolled back, so it may contain nothing but SQL. Between tries it waits some random milliseconds, so that the same
 * two do not collide again.
 */
export async function transact<Tx, T>(database: Database<Tx>, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await database.transaction(async (tx) => {
        const done = await work(tx);
        faultpoint('accept.before_commit');
        return done;
      });
      faultpoint('accept.after_commit');
      return result;
    } catch (error) {
      if (attempt >= attemptsMax || classifyDatabaseError(error) !== 'conflict') throw error;
      await wait(Math.random() * backoffMsMax * attempt);
    }
  }
}
