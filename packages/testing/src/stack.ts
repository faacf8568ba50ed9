import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { z } from 'zod';
import { openLeases } from './leases';
import { until } from './wait';

export interface StackOptions {
  /** The backend of the queue. Default: QUEUE_BACKEND, or else Redis if there is one, or else Postgres. */
  queueBackend?: 'redis' | 'postgres';
  /**
   * The length of a lease in seconds. Default: 15, so that no worker loses its lease on a busy machine. `killAndWait`
   * ends the leases of the worker that it kills.
   */
  leaseSeconds?: number;
  /** The pause between two sweeps. Default: 300 ms. */
  sweepMs?: number;
  faultsDir?: string;
  /** The URL of an OTLP/HTTP collector. */
  otlpEndpoint?: string;
  /** The built tree to start, for example of another release. Default: this tree. */
  tree?: string;
  /** The path of the Node program for all processes. Default: the Node that runs the tests. */
  node?: string;
  /** An existing data folder, for a second start on the same data. `stop` then does not remove the folder. */
  dataDir?: string;
  /** Environment variables for the program of `npm start`. */
  environment?: Readonly<Record<string, string>>;
}

/** The fields that `demo.json` has in every stack. Further fields of a larger demo are kept. */
const demoSchema = z.looseObject({
  base_url: z.string(),
  org_id: z.string(),
  child_org_id: z.string(),
  live_key: z.string(),
  sandbox_key: z.string(),
  staff_key: z.string(),
  other_org_key: z.string(),
  sites: z.array(z.object({ id: z.string(), url: z.string(), files_dir: z.string(), database_url: z.string() })),
  processes_file: z.string(),
});
export type StackDemo = z.infer<typeof demoSchema>;

const processesSchema = z.record(z.string(), z.object({ pid: z.int(), port: z.int() }));
export type StackProcesses = z.infer<typeof processesSchema>;

export interface TestStack {
  dataDir: string;
  demo: StackDemo;
  supervisorPid: number;
  /** Returns the running processes, as `processes.json` lists them. */
  processes(): StackProcesses;
  /** Sends a signal (default: SIGKILL) to a process. @throws when it does not run */
  kill(name: string, signal?: NodeJS.Signals): void;
  /**
   * Kills a process with SIGKILL, and resolves with its new pid after its restart. If the process is a worker, ends its
   * leases, so that its work continues at once.
   */
  killAndWait(name: string): Promise<number>;
  /**
   * Ends the leases of a service's workflows that were taken or renewed before `at` (milliseconds since 1970, default:
   * now). Call it only when the workers of these leases are dead.
   */
  expireLeases(service: string, at?: number): Promise<void>;
  log(name: string): string;
  /** Returns an environment variable of a running process, which may be a secret. @throws if the variable is not set */
  variable(name: string, variable: string): string;
  environment(name: string): Record<string, string>;
  /** Stops everything as Ctrl-C does, and removes the data folder if the test did not provide it. */
  stop(): Promise<void>;
}

const root = path.resolve(__dirname, '../../..');
/** The limit for a start on two cores that also run other tests. On an idle machine a start takes about 10 s. */
const startTimeoutMs = 400_000;

/**
 * Starts the whole of Drydock with the program of `npm start`, on free ports and in a data folder of its own. The tree
 * must be built. Rejects if a part of the demo content could not be created.
 */
export async function startStack(options: StackOptions = {}): Promise<TestStack> {
  const dataDir = options.dataDir ?? fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-stack-'));
  fs.chmodSync(dataDir, 0o711); // root runs Postgres under another account, which must be able to enter the folder
  const tree = options.tree ?? root;
  const supervisor = spawn(
    options.node ?? process.execPath,
    ['--enable-source-maps', path.join(tree, 'infra/dev/dist/start.js')],
    {
      cwd: tree,
      env: { ...process.env, ...stackEnvironment(options, dataDir) },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  );
  const exited = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  const stop = async (): Promise<void> => {
    if (supervisor.exitCode === null && supervisor.signalCode === null) supervisor.kill('SIGTERM');
    await exited;
    if (options.dataDir === undefined) fs.rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    await waitForReady(supervisor, exited);
  } catch (error) {
    await stop();
    throw error;
  }
  const stack = openRunningStack(dataDir, supervisor.pid ?? 0);
  if (stack.demo['unfinished'] === undefined) return { ...stack, stop };
  const warnings = readWarnings(path.join(dataDir, 'logs'));
  await stop();
  const missing = JSON.stringify(stack.demo['unfinished'], null, 2);
  throw new Error(`The stack came up without all of its content:\n${missing}\n${warnings.join('\n')}`);
}

/** Returns the last warnings and errors of each process, before the logs are removed with the data folder. */
function readWarnings(folder: string): string[] {
  return fs.readdirSync(folder).flatMap((file) => {
    const lines = fs.readFileSync(path.join(folder, file), 'utf8').split('\n');
    return lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line)).slice(-5);
  });
}

function stackEnvironment(options: StackOptions, dataDir: string): Record<string, string> {
  return {
    CI: '1',
    DRYDOCK_PORT: '0',
    DRYDOCK_DATA_DIR: dataDir,
    DRYDOCK_EPHEMERAL: '1',
    DRYDOCK_RATE_LIMIT_SCALE: '1000',
    WORKFLOW_LEASE_SECONDS: String(options.leaseSeconds ?? 15),
    WORKFLOW_SWEEP_MS: String(options.sweepMs ?? 300),
    ...(options.queueBackend === undefined ? {} : { QUEUE_BACKEND: options.queueBackend }),
    ...(options.faultsDir === undefined ? {} : { DRYDOCK_FAULTS: options.faultsDir }),
    ...(options.otlpEndpoint === undefined
      ? {}
      : { OTEL_EXPORTER_OTLP_ENDPOINT: options.otlpEndpoint, OTEL_BSP_SCHEDULE_DELAY: '200' }),
    ...options.environment,
  };
}

async function waitForReady(supervisor: ChildProcess, exited: Promise<void>): Promise<void> {
  let output = '';
  for (const stream of [supervisor.stdout, supervisor.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-8000);
    });
  }
  const ready = new Promise<'ready'>((resolve) => supervisor.once('message', () => resolve('ready')));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), startTimeoutMs);
  });
  const outcome = await Promise.race([ready, exited, late]);
  clearTimeout(timer);
  if (outcome !== 'ready')
    throw new Error(`The stack did not come up${outcome === 'late' ? ' in time' : ''}:\n${output}`);
}

function openRunningStack(dataDir: string, supervisorPid: number): Omit<TestStack, 'stop'> {
  const processes = (): StackProcesses =>
    processesSchema.parse(JSON.parse(fs.readFileSync(path.join(dataDir, 'processes.json'), 'utf8')));
  const pidOf = (name: string): number => {
    const running = processes()[name];
    if (running === undefined)
      throw new Error(`${name} does not run; there are ${Object.keys(processes()).join(', ')}`);
    return running.pid;
  };
  const expireLeases = async (service: string, at = Date.now()): Promise<void> => {
    const client = new Client({ connectionString: variableOf(pidOf(service), 'DATABASE_URL') });
    await client.connect();
    try {
      // The worker of keys delivers webhooks and has no workflows.
      const { rows } = await client.query<{ exists: boolean }>("SELECT to_regclass('workflow') IS NOT NULL AS exists");
      if (rows[0]?.exists !== true) return;
      const leaseSeconds = Number(variableOf(pidOf(`${service}-worker`), 'WORKFLOW_LEASE_SECONDS'));
      await openLeases(
        async (text, values) => (await client.query<{ fence: string }>(text, [...values])).rows,
        leaseSeconds,
      ).expire(at);
    } finally {
      await client.end();
    }
  };
  return {
    dataDir,
    demo: demoSchema.parse(JSON.parse(fs.readFileSync(path.join(dataDir, 'demo.json'), 'utf8'))),
    supervisorPid,
    processes,
    kill: (name, signal = 'SIGKILL') => void process.kill(pidOf(name), signal),
    killAndWait: async (name) => {
      const pid = pidOf(name);
      process.kill(pid, 'SIGKILL');
      const killedAt = Date.now();
      const again = await until(() => processes()[name]?.pid !== pid && processes()[name]?.pid, {
        timeoutMs: 120_000,
        what: `the restart of ${name}`,
      });
      if (name.endsWith('-worker')) await expireLeases(name.slice(0, -'-worker'.length), killedAt);
      return again;
    },
    expireLeases,
    variable: (name, variable) => variableOf(pidOf(name), variable),
    environment: (name) => environmentOf(pidOf(name)),
    log: (name) => {
      const file = path.join(dataDir, 'logs', `${name}.log`);
      return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    },
  };
}

/**
 * Reads the environment of a process from /proc. Tests can find derived secrets only there, because the supervisor of a
 * whole stack writes none of them to disk.
 */
function environmentOf(pid: number): Record<string, string> {
  const lines = fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  return Object.fromEntries(lines.filter((line) => line !== '').map((line) => line.split(/=(.*)/s)));
}

function variableOf(pid: number, name: string): string {
  const value = environmentOf(pid)[name];
  if (value === undefined) throw new Error(`process ${pid} has no ${name}`);
  return value;
}
