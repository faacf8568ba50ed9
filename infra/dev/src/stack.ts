import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { customerSessionBytes, ensureServiceDatabases, runMigrations } from '@drydock/postgres';
import { clusterAccounts, detectIsolation, type Isolation } from '@drydock/process';
import { prepareQueue } from '@drydock/workflow/dispatch';
import { claimDataFolder, openMasterKey, openPortBook, openProcessTable, writeJsonAtomically } from './data-folder';
import { type DevConfig, inRepo } from './dev-config';
import {
  chooseQueue,
  type ManagedPostgres,
  managedNode,
  managedPostgres,
  managedRedis,
  type NodeProgram,
  openChildLog,
  readLastLines,
} from './managed-process';
import { databaseUrl, readinessPath, type SecretPlace, type ServiceWithDatabase } from './place';
import type { ProcessPlan } from './process-plan';
import { createSupervisor, type Supervisor } from './supervisor';
import { findPlan, topology, withNeeds } from './topology';

/** The processes of the topology that run on this machine. */
export interface Stack {
  /** Starts the processes. Calls `tell` with the name of each process that becomes ready. */
  start(tell: (line: string) => void): Promise<void>;
  /**
   * Gives addresses and secrets. `adminUrl` and `sitesSocketFolder` throw before the start of their database server. In
   * a data folder without `sites-postgres`, which only earlier versions made, they return '' for that server.
   */
  place: SecretPlace;
  programOf(name: string): NodeProgram;
  processesFile: string;
  /** Returns lines for the user, for example which queue is used. They are complete after the start. */
  notes(): string[];
  /** Stops each process after the processes that need it. May be called at any time and more than once. */
  stop(): Promise<void>;
}

interface StackOptions {
  /** The processes to run. The processes that they need run too. Default: the whole topology. */
  names?: readonly string[];
  /** Processes that the caller runs itself. The processes that they need are still started. */
  without?: readonly string[];
  /** Called when all processes were spawned but may not be ready yet. The caller then starts its own processes. */
  onSpawned?: () => void;
}

/**
 * The setting `max_locks_per_transaction` of `sites-postgres`. A backup locks all tables of a site at once. With 400
 * locks for each of its 200 connections, the server allows 80,000 locks.
 */
const sitesLocks = '400';

/**
 * Claims the data folder and prepares the start. `say` gets a line for each event that the user did not ask for, such
 * as the death of a process.
 */
export async function openStack(
  config: DevConfig,
  say: (line: string) => void,
  options: StackOptions = {},
): Promise<Stack> {
  const { dataDir, isEphemeral } = config;
  await claimDataFolder(dataDir, say);
  const secrets = openMasterKey(dataDir);
  const table = openProcessTable(dataDir);
  const supervisor = createSupervisor(table, say);
  const logsDir = path.join(dataDir, 'logs');
  const queue = chooseQueue(config);
  const hasOlderSites = existsSync(path.join(dataDir, 'sites-postgres'));
  const isThere = ({ name, isForOldData }: ProcessPlan): boolean =>
    name === 'redis' ? queue.kind === 'redis-child' : isForOldData !== true || existsSync(path.join(dataDir, name));
  const wanted = withNeeds(options.names ?? topology.map(({ name }) => name));
  const plans = wanted.filter(isThere).filter(({ name }) => !(options.without ?? []).includes(name));
  const services = [...new Set(wanted.flatMap(({ database }) => database ?? []))];
  const needsQueue = wanted.some(({ name }) => name === 'redis');
  const book = await openPortBook(dataDir, say);
  const portOf = await choosePorts();

  const clusters = new Map<string, ManagedPostgres>();
  const clusterOf = (name: string) => {
    const cluster = clusters.get(name);
    if (cluster === undefined) throw new Error(`${name} does not run here`);
    return cluster.server();
  };
  let isolation: Isolation | undefined;

  const place: SecretPlace = {
    isEmbedded: true,
    addressOf: (name) => `127.0.0.1:${portOf(name)}`,
    folderOf: (name) => path.join(dataDir, name),
    sitesSocketFolder: () => (hasOlderSites ? (clusterOf('sites-postgres').socketFolder ?? '') : ''),
    setting: (variable, fallback = '') => config.settings[variable] ?? fallback,
    ...secrets,
    adminUrl: (name) => (name === 'sites-postgres' && !hasOlderSites ? '' : clusterOf(name).adminUrl),
    queueUrl: () => place.redisUrl() ?? databaseUrl(place, 'queue'),
    redisUrl: () => {
      if (queue.kind === 'redis-child') return `redis://:${secrets.current('redis')}@${place.addressOf('redis')}`;
      return queue.kind === 'redis-url' ? queue.url : undefined;
    },
  };

  /**
   * Finds a port for every process of the topology before the first process starts, because a process gets the
   * addresses of others in its environment.
   */
  async function choosePorts(): Promise<(name: string) => number> {
    const ports = new Map<string, number>();
    for (const { name } of topology.filter(isThere)) {
      const isGiven = name === 'gateway' && config.port !== 0 && plans.some((plan) => plan.name === name);
      ports.set(name, isGiven ? await book.insist(name, config.port) : await book.choose(name));
    }
    return (name) => {
      const port = ports.get(name);
      if (port === undefined) throw new Error(`The topology has no process called ${name}`);
      return port;
    };
  }

  function programOf(name: string): NodeProgram {
    const { run, environment, secrets, network } = findPlan(name);
    if ('store' in run) throw new Error(`${name} is no program of ours`);
    const own = Object.entries({ ...environment?.(place), ...secrets?.(place) }).filter(([, value]) => value !== '');
    // An emulator sends no telemetry, because a real provider would send none to Drydock.
    const commonEnvironment = Object.fromEntries(
      Object.entries(config.commonEnvironment).filter(
        ([variable]) => network !== 'clouds' || !variable.startsWith('OTEL_'),
      ),
    );
    const metricsPort = metricsPortOf(config.metricsPort, name);
    return {
      name,
      entry: run.entry,
      flags: run.flags ?? [],
      port: portOf(name),
      environment: {
        ...commonEnvironment,
        ...(metricsPort === undefined ? {} : { OTEL_EXPORTER_PROMETHEUS_PORT: String(metricsPort) }),
        ...Object.fromEntries(own),
      },
    };
  }

  async function startPostgres(name: string): Promise<void> {
    const log = openChildLog(logsDir, name);
    const ofSites = {
      account: clusterAccounts.sites,
      sessionBytes: customerSessionBytes,
      isSocketOnly: true,
      settings: { max_locks_per_transaction: sitesLocks },
    };
    const own = name === 'sites-postgres' ? ofSites : { account: clusterAccounts.services };
    const cluster = managedPostgres({
      name,
      folder: path.join(dataDir, name),
      port: portOf(name),
      isEphemeral,
      onLog: log.write,
      ...own,
    });
    clusters.set(name, cluster);
    await supervisor.keepRunning(cluster.managed);
    if (name === 'postgres') await createDatabases();
  }

  /**
   * Creates the databases of all services in one call, because two sessions that grant rights at the same time would
   * fail with a conflict.
   */
  async function createDatabases(): Promise<void> {
    const names = needsQueue && queue.kind === 'postgres' ? ([...services, 'queue'] as const) : services;
    const databases = names.map((name) => ({ name, passwords: secrets.rotated(`postgres:${name}`).split(',') }));
    await ensureServiceDatabases(place.adminUrl('postgres'), databases);
  }

  async function startRedis(): Promise<void> {
    const log = openChildLog(logsDir, 'redis');
    const passwordsNow = () => secrets.rotated('redis').split(',');
    const folder = path.join(dataDir, 'redis');
    await supervisor.keepRunning(
      managedRedis({ folder, port: portOf('redis'), isEphemeral, onLog: log.write, passwordsNow }),
    );
  }

  async function startOne({ name, run }: ProcessPlan, tell: (line: string) => void): Promise<void> {
    if ('entry' in run) {
      if (name === 'site-host') isolation = await detectIsolation();
      await supervisor.keepRunning(managedNode(() => programOf(name), logsDir, say));
      return;
    }
    await (run.store === 'redis' ? startRedis() : startPostgres(name));
    tell(name);
  }

  /**
   * Starts each process once, after the processes that it needs. A database server counts as started when it answers. A
   * program of Drydock counts as started when it is spawned, because programs wait for each other by themselves.
   * Resolves when all programs are ready.
   */
  async function start(tell: (line: string) => void): Promise<void> {
    const starting = new Map<string, Promise<void>>();
    const once = (key: string, work: () => Promise<unknown>): Promise<void> => {
      const begun = starting.get(key) ?? work().then(() => undefined);
      starting.set(key, begun);
      return begun;
    };
    const ready = (name: string): Promise<void> =>
      name === 'redis' ? once('queue', prepare) : bringUp(findPlan(name));
    const prepare = async (): Promise<void> => {
      if (queue.kind !== 'redis-url') await bringUp(findPlan(queue.kind === 'postgres' ? 'postgres' : 'redis'));
      await prepareQueue(place.queueUrl());
    };
    const migrate = (service: ServiceWithDatabase): Promise<void> =>
      once(`migrate-${service}`, async () => {
        await ready('postgres');
        await runMigrations(inRepo(`services/${service}`), databaseUrl(place, service));
      });
    const bringUp = (plan: ProcessPlan): Promise<void> =>
      once(plan.name, async () => {
        await Promise.all([...plan.needs.map(ready), ...(plan.database === undefined ? [] : [migrate(plan.database)])]);
        if (plans.includes(plan)) await startOne(plan, tell);
      });
    await Promise.all([...plans.map(bringUp), ...wanted.map(({ name }) => ready(name))]);
    options.onSpawned?.();
    const programs = plans.filter(({ run }) => 'entry' in run);
    if (config.metricsPort !== undefined)
      writeTargets(path.join(dataDir, 'prometheus-targets.json'), config.metricsPort, programs);
    await Promise.all(
      programs.map(async ({ name }) => {
        await waitUntilReady(supervisor, name, portOf(name), path.join(logsDir, `${name}.log`));
        tell(name);
      }),
    );
  }

  async function stopAll(): Promise<void> {
    supervisor.close();
    const stopping = new Map<string, Promise<void>>();
    const stopOne = (name: string): Promise<void> => {
      const begun = stopping.get(name) ?? stopAfterItsUsers(name);
      stopping.set(name, begun);
      return begun;
    };
    const stopAfterItsUsers = async (name: string): Promise<void> => {
      await Promise.all(plans.filter(({ needs }) => needs.includes(name)).map((user) => stopOne(user.name)));
      await supervisor.stop([name]);
    };
    await Promise.all(plans.map(({ name }) => stopOne(name)));
    await book.close();
  }
  let stopped: Promise<void> | undefined;

  return {
    start,
    place,
    programOf,
    processesFile: table.file,
    notes: () => [
      ...(needsQueue ? [`Queue: ${queue.note}`] : []),
      ...(config.metricsPort === undefined
        ? []
        : [`Metrics: ${path.join(dataDir, 'prometheus-targets.json')} tells Prometheus where they are`]),
      ...[...clusters.values()]
        .map((cluster) => cluster.server())
        .filter(({ isElsewhere }) => isElsewhere)
        .map((server) => `Postgres cannot reach this folder as the user it runs as; its data is in ${server.dataDir}`),
      ...(isolation === undefined ? [] : [describeIsolation(isolation)]),
    ],
    stop: () => {
      stopped ??= stopAll();
      return stopped;
    },
  };
}

/** Returns the metrics port of a process. The port is the same at every start. */
const metricsPortOf = (first: number | undefined, name: string): number | undefined =>
  first === undefined ? undefined : first + topology.findIndex((plan) => plan.name === name);

/** Writes the addresses of the processes for Prometheus, in the format of its `file_sd_configs`. */
function writeTargets(file: string, first: number, programs: readonly ProcessPlan[]): void {
  const targets = programs.map(({ name }) => ({
    targets: [`127.0.0.1:${metricsPortOf(first, name)}`],
    labels: { process: name },
  }));
  writeJsonAtomically(file, targets);
}

/**
 * How long a process may take until it is ready, in milliseconds. On two cores it takes 2 to 3 s when everything starts
 * at once. The limit is for much slower machines.
 */
const readyTimeoutMs = 180_000;
const deathsMax = 4;

/** Resolves when the process is ready. @throws with the end of its log if it keeps dying or is not ready in time */
async function waitUntilReady(supervisor: Supervisor, name: string, port: number, logFile: string): Promise<void> {
  const until = performance.now() + readyTimeoutMs;
  while (!(await isReady(port))) {
    const isDying = supervisor.deathsOf(name) >= deathsMax;
    if (isDying || performance.now() > until) {
      throw new Error(
        `${name} ${isDying ? 'keeps dying' : 'is not ready'}. The end of ${logFile}:\n${readLastLines(logFile, 15)}`,
      );
    }
    await sleep(50);
  }
}

async function isReady(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${readinessPath}`, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Returns a line that tells how applications are isolated from each other on this machine. */
function describeIsolation(isolation: Isolation): string {
  switch (isolation.kind) {
    case 'accounts':
      return 'Applications: each in a box of its own, as an account of its own';
    case 'user_namespaces':
      return 'Applications: each in a box of its own, made by user namespaces; as root each would have an account of its own, too';
    case 'none':
      return `Applications: refused (sandbox_unavailable), since nothing keeps them apart here: ${isolation.reason}. See packages/process/README.md`;
  }
}
