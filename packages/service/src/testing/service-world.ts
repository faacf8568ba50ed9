import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { type Leases, openLeases } from '@drydock/testing/leases';
import type { QueueBackend } from '@drydock/testing/scope';
import type { Caller } from '../access/internal-token';
import { type ServiceApi, startServiceApi, type TestedService } from './service-api';
import { testQueue } from './test-queue';

/** An API with its queue, and workers that a test spawns and may kill. */
export interface ServiceWorld {
  api: ServiceApi;
  caller: Caller;
  /**
   * Starts a worker process from dist, as it is deployed. `environment` adds to the settings that every worker gets.
   */
  spawnWorker: (environment?: Record<string, string>) => ChildProcess;
  /** Runs `work` while a worker runs. Resolves only once the worker is killed and its leases have ended. */
  withWorker<T>(work: () => Promise<T>): Promise<T>;
  /** Kills the remaining workers and ends their leases. */
  endWorkers: () => Promise<void>;
  leases: Leases;
  /**
   * Ends all leases, so that another worker takes over at once. It is needed if a worker was frozen (SIGSTOP) or has
   * ended by itself. It is not needed after `kill('SIGKILL')`, because the leases of a spawned worker end with it.
   */
  expireLeases: () => Promise<void>;
  /** Ends the workers, and closes everything that was opened. */
  close(): Promise<void>;
}

export interface WorldOptions {
  backend: QueueBackend;
  caller: Caller;
  /** The environment of the API and the workers. */
  environment?: Record<string, string>;
  /** The environment of the workers alone. */
  workers?: Record<string, string>;
}

/**
 * The lease is long enough that a worker on a busy machine does not lose it. No test waits for it to expire: see {@link
 * ServiceWorld.expireLeases}.
 */
const leaseSeconds = 15;

/** Opens a real API, queue and Postgres. No worker runs before one is spawned. */
export async function openServiceWorld(tested: TestedService, options: WorldOptions): Promise<ServiceWorld> {
  const { backend, caller, workers = {} } = options;
  const queue = await testQueue(backend);
  const api = await startServiceApi(tested, caller, { ...options.environment, QUEUE_URL: queue.url });
  const common = {
    ...api.environment,
    PATH: process.env['PATH'] ?? '',
    LOG_LEVEL: 'warn',
    WORKFLOW_LEASE_SECONDS: String(leaseSeconds),
    WORKFLOW_SWEEP_MS: '200',
    SANDBOX_SLOW_MS: '300',
    ...workers,
  };
  const alive = new Set<ChildProcess>();
  const leases = openLeases((text, values) => api.rows(text, values), leaseSeconds);
  const expiring: Promise<unknown>[] = [];
  const expireOf = (environment: Record<string, string>): void => {
    const seconds = Number(environment['WORKFLOW_LEASE_SECONDS'] ?? leaseSeconds);
    const expired = openLeases((text, values) => api.rows(text, values), seconds).expire();
    // `end` awaits the same promise and reports its failure.
    expired.catch(() => undefined);
    expiring.push(expired);
  };
  const spawnWorker = (environment: Record<string, string> = {}): ChildProcess => {
    const whole: Record<string, string> = { ...common, ...environment };
    const worker = spawn(process.execPath, ['--enable-source-maps', path.join(tested.dir, 'dist/worker.js')], {
      env: whole,
      stdio: ['ignore', process.env['DRYDOCK_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'inherit'],
    });
    alive.add(worker);
    worker.once('exit', (_code, signal) => {
      alive.delete(worker);
      if (signal === 'SIGKILL') expireOf(whole);
    });
    return worker;
  };
  const end = async (workers: readonly ChildProcess[]): Promise<void> => {
    const left = workers.filter((worker) => alive.has(worker));
    const gone = left.map((worker) => once(worker, 'exit'));
    for (const worker of left) worker.kill('SIGKILL');
    await Promise.all(gone);
    await Promise.all(expiring.splice(0));
  };
  const endWorkers = (): Promise<void> => end([...alive]);
  return {
    api,
    caller,
    leases,
    expireLeases: async () => void (await leases.expire()),
    spawnWorker,
    withWorker: async (work) => {
      const worker = spawnWorker();
      try {
        return await work();
      } finally {
        await end([worker]);
      }
    },
    endWorkers,
    close: async () => {
      await endWorkers();
      await api.close();
      await queue.close();
    },
  };
}
