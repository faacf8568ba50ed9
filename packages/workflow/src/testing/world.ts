import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { testPostgres } from '@drydock/postgres/testing/postgres';
import { type Database, openPool, pgDatabase } from '@drydock/service/database';
import { type TestQueue, testQueue } from '@drydock/service/testing/test-queue';
import { type Leases, openLeases } from '@drydock/testing/leases';
import type { QueueBackend } from '@drydock/testing/scope';
import type { Pool, PoolClient } from 'pg';
import { uuidv7 } from 'uuidv7';
import type { Log, WorkflowDefinition } from '../definition/definition';
import { createDispatcher, type Dispatcher } from '../dispatch/dispatcher';
import { createEngine, type Engine, type EngineOptions } from '../runner/engine';
import { startWorkflow, type WorkflowStart, type WorkflowStarted } from '../store/start-workflow';
import { createBox } from './box';
import { type BoxContext, boxTables } from './refill-box';

export type Definition = WorkflowDefinition<BoxContext, PoolClient>;

export interface World {
  database: Database<PoolClient>;
  databaseUrl: string;
  pool: Pool;
  queue: TestQueue;
  boxes: string;
  /** The log lines of all engines and dispatchers of this world, even of other processes. */
  lines: { level: string; message: string; [field: string]: unknown }[];
  log: Log;
  orgId: string;
  start(more: Partial<WorkflowStart> & { kind: string }): Promise<WorkflowStarted>;
  startBox(text?: string): Promise<{ box: string; workflowId: string }>;
  status(workflowId: string): Promise<string | undefined>;
  engine(definitions: readonly Definition[], more?: Partial<EngineOptions<BoxContext, PoolClient>>): Engine;
  dispatcher(): Dispatcher;
  /**
   * Starts a worker process. If the process is killed, all leases in this world's database expire, even the leases of
   * other workers.
   */
  spawnWorker(environment?: Record<string, string>): ChildProcess;
  /** The access to the leases of this world, for a test that freezes a worker. */
  leases: Leases;
  /**
   * Makes every workflow due that waits for a later attempt. It must be called before each attempt, because each
   * failure causes another pause.
   */
  skipPauses(): Promise<void>;
  /** Stops everything that was started and deletes all workflows, for the next test of a file. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

const prismaFolder = path.resolve(__dirname, '../../prisma');
export const workflowTables = ['tables.sql', 'workflow.sql'].map((file) =>
  readFileSync(path.join(prismaFolder, file), 'utf8'),
);
/**
 * The lease is long enough that a worker on a busy machine does not lose it. No test waits for it to expire: see {@link
 * World.leases}.
 */
const leaseSeconds = 15;
export const sweepMs = 200;

/**
 * Opens a database with the engine's tables, a queue, and a folder for boxes. Closing the world stops everything that
 * was started in it.
 */
export async function openWorld(backend: QueueBackend): Promise<World> {
  const [postgres, queue] = await Promise.all([
    testPostgres({ sql: [...workflowTables, boxTables] }),
    testQueue(backend),
  ]);
  const pool = openPool(postgres.url);
  pool.on('error', () => undefined);
  const database = pgDatabase(pool);
  const boxes = mkdtempSync(path.join(tmpdir(), 'drydock-boxes-'));
  const lines: World['lines'] = [];
  const note = (level: string) => (fields: object, message: string) => void lines.push({ ...fields, level, message });
  const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const closing: (() => Promise<unknown>)[] = [];
  const stopAll = async (): Promise<void> => {
    for (const stop of closing.splice(0).reverse()) await stop();
  };
  const orgId = uuidv7();
  const query = async (text: string, values: readonly unknown[]) => (await pool.query(text, [...values])).rows;
  const common = { database, queueUrl: queue.url, queueName: 'boxes', log };
  const start = (more: Partial<WorkflowStart> & { kind: string }) => {
    const subject = { type: 'box', id: uuidv7() };
    const ours = {
      resourceKey: `box:${subject.id}`,
      subject,
      orgId,
      mode: 'live' as const,
      input: {},
      actorKeyId: null,
      requestId: 'request-1',
    };
    return database.transaction((tx) => startWorkflow(database.sql(tx), { ...ours, ...more }));
  };
  return {
    database,
    databaseUrl: postgres.url,
    pool,
    queue,
    boxes,
    lines,
    log,
    orgId,
    start,
    startBox: async (text = 'new') => {
      const box = uuidv7();
      createBox(boxes, box, 'old');
      const started = await start({
        kind: 'refill_box',
        resourceKey: `box:${box}`,
        subject: { type: 'box', id: box },
        input: { box, text },
      });
      return { box, workflowId: started.workflowId };
    },
    status: async (workflowId) =>
      (
        await database.sql().query<{ status: string }>('SELECT status FROM workflow WHERE id = $1::uuid', [workflowId])
      )[0]?.status,
    engine: (definitions, more = {}) => {
      const engine = createEngine({
        ...common,
        definitions,
        context: { database, boxes },
        leaseSeconds,
        sweepMs,
        concurrency: 8,
        ...more,
      });
      closing.push(() => engine.stop());
      engine.start();
      return engine;
    },
    dispatcher: () => {
      const dispatcher = createDispatcher(common);
      closing.push(() => dispatcher.close());
      return dispatcher;
    },
    spawnWorker: (environment = {}) => {
      const child = spawnWorker(
        { DATABASE_URL: postgres.url, QUEUE_URL: queue.url, BOXES: boxes, ...environment },
        lines,
      );
      const gone = once(child, 'exit').then(async ([, signal]) => {
        const seconds = Number(environment['WORKFLOW_LEASE_SECONDS'] ?? leaseSeconds);
        if (signal === 'SIGKILL') await openLeases(query, seconds).expire();
      });
      gone.catch(() => undefined);
      closing.push(async () => {
        child.kill('SIGKILL');
        await gone;
      });
      return child;
    },
    leases: openLeases(query, leaseSeconds),
    skipPauses: async () => {
      await pool.query(`UPDATE workflow SET due_at = clock_timestamp(), dispatch_after = clock_timestamp()
        WHERE status IN ('queued', 'running') AND lease_until IS NULL AND due_at > clock_timestamp()`);
    },
    reset: async () => {
      await stopAll();
      await pool.query('TRUNCATE workflow, workflow_step, workflow_schedule, box_swap, box_end');
      lines.length = 0;
    },
    close: async () => {
      await stopAll();
      await pool.end();
      await Promise.all([postgres.close(), queue.close()]);
      rmSync(boxes, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function spawnWorker(environment: Record<string, string>, lines: World['lines']): ChildProcess {
  const script = path.resolve(__dirname, '../../dist/testing/box-worker.js');
  const settings = { WORKFLOW_LEASE_SECONDS: String(leaseSeconds), WORKFLOW_SWEEP_MS: String(sweepMs), ...environment };
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  });
  let rest = '';
  child.stdout?.on('data', (chunk) => {
    const parts = `${rest}${String(chunk)}`.split('\n');
    rest = parts.pop() ?? '';
    for (const part of parts) lines.push(JSON.parse(part));
  });
  return child;
}
