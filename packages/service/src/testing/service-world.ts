import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { QueueBackend } from '@drydock/testing/scope';
import type { Caller } from '../access/internal-token';
import { type ServiceApi, startServiceApi, type TestedService } from './service-api';
import { testQueue } from './test-queue';

/** An API on a queue, and workers that a test spawns and may kill. */
export interface ServiceWorld {
  api: ServiceApi;
  caller: Caller;
  /** A worker process as it is deployed, from dist, with `environment` on top of what all of them get. */
  spawnWorker: (environment?: Record<string, string>) => ChildProcess;
  /** Kills the workers that are left. */
  endWorkers: () => Promise<void>;
  /** That too, and closes what was opened. */
  close(): Promise<void>;
}

export interface WorldOptions {
  backend: QueueBackend;
  caller: Caller;
  /** For the API and the workers. */
  environment?: Record<string, string>;
  /** For the workers alone. */
  workers?: Record<string, string>;
}

/** Seconds; as short as a killed worker's run can be made to wait for it. */
export const leaseSeconds = 1;

/** API, queue and Postgres for real; with no worker before one is spawned. */
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
  const endWorkers = async (): Promise<void> => {
    const gone = [...alive].map((worker) => once(worker, 'exit'));
    for (const worker of alive) worker.kill('SIGKILL');
    await Promise.all(gone);
  };
  return {
    api,
    caller,
    spawnWorker: (environment = {}) => {
      const worker = spawn(process.execPath, ['--enable-source-maps', path.join(tested.dir, 'dist/worker.js')], {
        env: { ...common, ...environment },
        stdio: ['ignore', process.env['DRYDOCK_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'inherit'],
      });
      alive.add(worker);
      worker.once('exit', () => alive.delete(worker));
      return worker;
    },
    endWorkers,
    close: async () => {
      await endWorkers();
      await api.close();
      await queue.close();
    },
  };
}
