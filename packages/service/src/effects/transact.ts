import { setTimeout as wait } from 'node:timers/promises';
import { faultpoint } from '@drydock/process/faultpoint';
import { classifyDatabaseError } from '../database/database-error';
import type { Database } from '../database/sql';

const attemptsMax = 3;
const backoffMsMax = 30;

/**
 * `work` in one transaction, tried up to three times when Postgres reports a serialization failure or deadlock: everything it did was rolled
 * back, so it must do nothing but SQL. Between tries it waits some milliseconds at random, lest the same two meet again.
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
