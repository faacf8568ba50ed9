// A worker process for the tests of this package. Its settings are in its environment. Each log message above debug is
// a JSON line on stdout.
import { writeSync } from 'node:fs';
import { openPool, pgDatabase } from '@drydock/service/database';
import type { Log } from '../definition/definition';
import { createEngine } from '../runner/engine';
import { createListener } from '../store/listener';
import { dawdle, refillBox } from './refill-box';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};
const say =
  (level: keyof Log) =>
  (fields: object, message: string): void => {
    const line = JSON.stringify({ level, message, ...fields }, (_, value: unknown) =>
      value instanceof Error ? value.stack : value,
    );
    writeSync(1, `${line}\n`);
  };
const log: Log = { debug: () => undefined, info: say('info'), warn: say('warn'), error: say('error') };

const pool = openPool(setting('DATABASE_URL'));
pool.on('error', () => undefined);
const database = pgDatabase(pool);
const listener = createListener({ connectionString: setting('DATABASE_URL'), log });
const engine = createEngine({
  database,
  definitions: [refillBox, dawdle],
  context: { database, boxes: setting('BOXES') },
  queueUrl: setting('QUEUE_URL'),
  queueName: 'boxes',
  leaseSeconds: Number(setting('WORKFLOW_LEASE_SECONDS')),
  sweepMs: Number(setting('WORKFLOW_SWEEP_MS')),
  concurrency: 4,
  log,
  listener,
});
// The worker ends with the test that has started it.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
engine.start();
log.info({ pid: process.pid }, 'ready');
process.once('SIGTERM', () => {
  void engine
    .stop()
    .then(() => listener.close())
    .then(() => pool.end())
    .then(() => process.exit(0));
});
