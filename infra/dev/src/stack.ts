import path from 'node:path';
import { runMigrations } from '@drydock/postgres/migrate/run-migrations';
import { detectIsolation, type Isolation } from '@drydock/process/isolation';
import { claimDataFolder } from './claim-data-folder';
import { type DataStores, startDataStores } from './data-stores';
import { openMasterKey } from './derive-secret';
import type { DevConfig } from './dev-config';
import { nodeMember } from './node-member';
import { openPortBook } from './ports';
import { openProcessTable } from './process-table';
import { listPrograms, settlePorts, stopOrder } from './programs/domains';
import type { Surroundings } from './programs/program';
import type { Step } from './progress';
import { inRepo } from './repo-root';
import { servicesWithDatabase } from './service-names';
import { createSupervisor } from './supervisor';
import { waitUntilReady } from './wait-until-ready';

/** The whole of Drydock in processes on this machine. */
export interface Stack {
  /** What brings it up, in order; run them all. */
  steps: Step[];
  processesFile: string;
  /** @throws before the first steps ran */
  surroundings(): Surroundings;
  /** What the user should know, once it is up. */
  notes(): string[];
  /** Stops every process in order; harmless at any time and more than once. */
  stop(): Promise<void>;
}

/** Claims the data folder and gets ready to start. `say` gets a line whenever something happens that nobody asked for. */
export async function openStack(config: DevConfig, say: (line: string) => void): Promise<Stack> {
  await claimDataFolder(config.dataDir, say);
  const derive = openMasterKey(config.dataDir);
  const table = openProcessTable(config.dataDir);
  const supervisor = createSupervisor(table, say);
  const ports = openPortBook(config.dataDir, say);
  const logsDir = path.join(config.dataDir, 'logs');
  let stores: DataStores | undefined;
  let around: Surroundings | undefined;
  let stopping: Promise<void> | undefined;

  const surroundings = (): Surroundings => {
    if (around === undefined) throw new Error('The data stores are not up yet');
    return around;
  };
  let isolation: Isolation | undefined;
  const startStores = async (): Promise<void> => {
    isolation = await detectIsolation();
    const portOf = await settlePorts(ports, { gateway: config.port });
    stores = await startDataStores({ config, supervisor, ports, derive }, servicesWithDatabase);
    const { dataDir, rateLimitScale, commonEnvironment: common } = config;
    around = { ...stores, dataDir, portOf, rateLimitScale, derive, common };
  };
  const migrate = async (): Promise<void> => {
    const programs = listPrograms(surroundings());
    const urls = new Map(programs.map(({ name, environment }) => [name, environment['DATABASE_URL']]));
    await Promise.all(servicesWithDatabase.map((service) => runMigrations(inRepo(`services/${service}`), urls.get(service) ?? '')));
  };
  const startPrograms = async (): Promise<void> => {
    const programs = listPrograms(surroundings());
    await Promise.all(programs.map((program) => supervisor.keepRunning(nodeMember(program, logsDir, say))));
    await Promise.all(programs.map(({ name, port }) => waitUntilReady(supervisor, name, port, path.join(logsDir, `${name}.log`))));
  };
  const stopAll = async (): Promise<void> => {
    supervisor.close();
    for (const names of stopOrder) await supervisor.stop(names);
  };
  return {
    steps: [
      { title: 'Starting Postgres and the queue', run: startStores },
      { title: 'Migrating the databases', run: migrate },
      { title: 'Starting the services', run: startPrograms },
    ],
    processesFile: table.file,
    surroundings,
    notes: () => [...(stores?.notes ?? []), ...(isolation === undefined ? [] : [describeIsolation(isolation)])],
    stop: () => {
      stopping ??= stopAll();
      return stopping;
    },
  };
}

/** How applications are kept apart on this machine. */
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
