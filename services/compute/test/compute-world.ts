import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { WorkflowView } from '@drydock/contracts/workflows';
import type { Caller } from '@drydock/service-kit/internal-token';
import type { QueueBackend } from '@drydock/test-kit/queue-backends';
import { testQueue } from '@drydock/test-kit/test-queue';
import { until } from '@drydock/test-kit/wait';
import { type ComputeApi, serviceDir, startApi } from './compute-api';
import { type GivenServer, givenServer } from './given-server';
import { type HetznerProject, openHetznerProject } from './hetzner-project';

const secret = (): string => randomBytes(32).toString('hex');
export const leaseSeconds = 1;

export interface ComputeWorld {
  api: ComputeApi;
  caller: Caller;
  project: HetznerProject;
  /** A worker process as it is deployed, from dist. */
  spawnWorker(environment?: Record<string, string>): ChildProcess;
  /** The one that is at work on the server. */
  workflowOf(serverId: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * API, queue, Postgres and the provider's stand-in for real; workers are spawned by the tests, which may kill them. `target`: changes of the range's configuration;
 * `more`: live ranges beside it, by name.
 */
export async function openWorld(
  backend: QueueBackend,
  caller: Caller,
  { clockScale = 40, target = {}, more = {} } = {},
): Promise<ComputeWorld> {
  const [queue, project] = [await testQueue(backend), await openHetznerProject(clockScale)];
  const targets = { fsn: project.target(target), ...more };
  const sandboxTargets = { fsn: project.target(target, 'sandbox') };
  const api = await startApi(caller, { queue: queue.url, targets, sandboxTargets });
  // Under load the first connection of all may take longer than a request is given.
  await until(async () => (await api.call('GET', '/v1/compute/servers')).status === 200, { timeoutMs: 30_000, what: 'a warm pool' });
  const environment = {
    PATH: process.env['PATH'] ?? '',
    LOG_LEVEL: 'warn',
    DATABASE_URL: api.postgres.url,
    SERVICE_SECRET: secret(),
    INTERNAL_TOKEN_SECRET: secret(),
    AUDIT_TOKEN_SECRET: secret(),
    KEYS_URL: 'http://127.0.0.1:1',
    QUEUE_URL: queue.url,
    WORKFLOW_LEASE_SECONDS: String(leaseSeconds),
    WORKFLOW_SWEEP_MS: '200',
    SANDBOX_SLOW_MS: '300',
    RECONCILE_SECONDS: '3600',
    COMPUTE_TARGETS: JSON.stringify(targets),
    SANDBOX_COMPUTE_TARGETS: JSON.stringify(sandboxTargets),
  };
  return {
    api,
    caller,
    project,
    spawnWorker: (more = {}) =>
      spawn(process.execPath, ['--enable-source-maps', path.join(serviceDir, 'dist/worker.js')], {
        env: { ...environment, ...more },
        stdio: ['ignore', process.env['DRYDOCK_TEST_LOG'] === undefined ? 'ignore' : 'inherit', 'inherit'],
      }),
    workflowOf: (serverId) =>
      until(
        async () => {
          const [row] = await api.rows<{ id: string }>('SELECT id FROM workflow WHERE subject_id = $1 ORDER BY id DESC LIMIT 1', [
            serverId,
          ]);
          return row?.id;
        },
        { everyMs: 10, what: 'a workflow' },
      ),
    close: async () => {
      await api.close();
      await project.close();
      await queue.close();
    },
  };
}

/** Follows what a 202 points to until it has ended. */
export const ended = ({ api }: ComputeWorld, location: unknown, options: object = {}): Promise<WorkflowView> =>
  until(
    async () => {
      const view = (await api.call('GET', String(location), options)).json as WorkflowView;
      return ['succeeded', 'failed', 'needs_attention'].includes(view.status) && view;
    },
    { timeoutMs: 45_000, everyMs: 50, what: `the end of ${String(location)}` },
  );

export interface Disk {
  serverId: string;
  machineId: string;
  snapshotId: string;
}

/** A server whose disk says "old", with a snapshot of when it said "new": what a rollback leads to is the new state. */
export async function makeDisk({ api, caller, project }: ComputeWorld, given: GivenServer = {}, owner: Caller = caller): Promise<Disk> {
  const machineId = await project.makeMachine({ mode: owner.mode });
  const serverId = await givenServer(api, owner, { machineId, ...given });
  await project.writeDisk(machineId, 'new');
  const snapshotId = await project.makeSnapshot(machineId, '', owner.mode);
  await project.writeDisk(machineId, 'old');
  return { serverId, machineId, snapshotId };
}

export const rollBack = ({ api }: ComputeWorld, { serverId, snapshotId }: Disk, options: object = {}) =>
  api.call('POST', `/v1/compute/servers/${serverId}/snapshots/${snapshotId}`, options);
