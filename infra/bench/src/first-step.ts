import fs from 'node:fs';
import path from 'node:path';
import { startPostgres } from '@drydock/postgres';
import { findRedis, startRedis } from '@drydock/process';
import { pgDatabase } from '@drydock/service/database';
import { workflowsFor } from '@drydock/workflow/definition';
import { createDispatcher, prepareQueue } from '@drydock/workflow/dispatch';
import { createEngine } from '@drydock/workflow/runner';
import { createListener, startWorkflow } from '@drydock/workflow/store';
import { Pool, type PoolClient } from 'pg';
import { z } from 'zod';
import { median } from './measure';
import { rawAddToStart } from './raw-queue';
import { printRows, type Row } from './report';
import { withWorkspace } from './workspace';

const samples = 150;
const orgId = '01890a5d-ac96-774b-bcce-b302099a8058';
const silent = { info() {}, warn() {}, error() {}, debug() {} };
const fragments = ['tables.sql', 'workflow.sql'].map((name) =>
  path.resolve(__dirname, '../../../packages/workflow/prisma', name),
);

/**
 * Returns, for each sample, the milliseconds from the commit that accepts a workflow to the start of its first step.
 */
async function acceptToStep(databaseUrl: string, queueUrl: string): Promise<number[]> {
  const pool = new Pool({ connectionString: databaseUrl });
  for (const file of fragments) await pool.query(fs.readFileSync(file, 'utf8'));
  const database = pgDatabase(pool);
  let arrived: () => void = () => {};
  const definition = workflowsFor<null, PoolClient>()({ kind: 'bench', input: z.strictObject({}) })
    .step('only', { run: async () => arrived() })
    .build();
  const shared = { database, queueUrl, queueName: 'bench', log: silent };
  const listener = createListener({ connectionString: databaseUrl, log: silent });
  const engine = createEngine({
    ...shared,
    definitions: [definition],
    context: null,
    leaseSeconds: 15,
    sweepMs: 1_000,
    concurrency: 4,
    listener,
  });
  const dispatcher = createDispatcher(shared);
  engine.start();
  const taken: number[] = [];
  for (let number = -10; number < samples; number += 1) {
    const done = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const started = await database.transaction((tx) =>
      startWorkflow(database.sql(tx), {
        kind: 'bench',
        resourceKey: `bench:${number}`,
        subject: { type: 'bench', id: String(number) },
        orgId,
        mode: 'live',
        input: {},
        actorKeyId: null,
        requestId: `bench-${number}`,
        definition,
      }),
    );
    const startedMs = performance.now();
    dispatcher.enqueue({ workflowId: started.workflowId, orgId, kind: 'bench' });
    await done;
    if (number >= 0) taken.push(performance.now() - startedMs);
  }
  await dispatcher.close();
  await engine.stop();
  await listener.close();
  await pool.end();
  return taken;
}

/**
 * Compares, on each backend of the queue, the time from acceptance to the first step with the time from BullMQ's `add`
 * to the start of the job. The databases write durably, as in production.
 */
export const benchFirstStep = (): Promise<void> =>
  withWorkspace('first-step', async (folder) => {
    fs.chmodSync(folder, 0o711);
    const postgres = await startPostgres({ folder: path.join(folder, 'postgres') });
    const redis = findRedis() === null ? null : await startRedis({ folder: path.join(folder, 'redis') });
    const rows: Row[] = [];
    for (const backend of ['Redis', 'Postgres'] as const) {
      const queueUrl = backend === 'Redis' ? redis?.url : await createDatabase(postgres.adminUrl, 'queue');
      if (queueUrl === undefined) continue;
      if (backend === 'Postgres') await prepareQueue(queueUrl);
      const raw = median(await rawAddToStart(queueUrl, samples));
      const ours = median(
        await acceptToStep(await createDatabase(postgres.adminUrl, `ours_${backend.toLowerCase()}`), queueUrl),
      );
      // A higher ratio must be better, as in every table. So the ratio is the allowed time over the measured time.
      const allowed = backend === 'Redis' ? 8 : 4;
      rows.push({
        what: `accepted (committed) to first step on ${backend}, p50 (at most ${allowed} times)`,
        ours: `${ours.toFixed(2)} ms (${(ours / raw).toFixed(1)} times)`,
        peer: 'raw BullMQ, add to start',
        peerValue: `${raw.toFixed(2)} ms`,
        ratio: (raw * allowed) / ours,
        bar: 1,
      });
    }
    printRows(
      'First step',
      rows,
      `${samples} samples, one at a time. The ratio is the allowed multiple over the measured one.`,
    );
    // The servers are not stopped here but end with this process. BullMQ's backend for Postgres keeps a connection for
    // a moment after `close`, and a stop would break it.
  });

async function createDatabase(adminUrl: string, name: string): Promise<string> {
  const pool = new Pool({ connectionString: adminUrl, max: 1 });
  await pool.query(`CREATE DATABASE ${name}`);
  await pool.end();
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}
