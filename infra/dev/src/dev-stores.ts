import path from 'node:path';
import { runMigrations } from '@drydock/postgres/migrate/run-migrations';
import { proveProcess } from '@drydock/process/process-proof';
import { claimDataFolder } from './claim-data-folder';
import { startDataStores } from './data-stores';
import { openMasterKey } from './derive-secret';
import type { DevConfig } from './dev-config';
import type { DevEnvironment } from './dev-environment';
import { type NodeProgram, nodeMember } from './node-member';
import { openPortBook } from './ports';
import { openProcessTable } from './process-table';
import { listHosts, listPrograms, settlePorts, stopOrder } from './programs/domains';
import { inRepo } from './repo-root';
import type { ServiceWithDatabase } from './service-names';
import { createSupervisor } from './supervisor';
import { waitUntilReady } from './wait-until-ready';

/** What one service owns, brought up for it alone. */
export interface DevStores {
  environment: DevEnvironment;
  stop(): Promise<void>;
}

/** Brings up Postgres, the queue and the hosts that the service works on; migrates this one service. No other service runs: calls to them fail. */
export async function startDevStores(service: ServiceWithDatabase, config: DevConfig, say: (line: string) => void): Promise<DevStores> {
  await claimDataFolder(config.dataDir, say);
  const derive = openMasterKey(config.dataDir);
  const supervisor = createSupervisor(openProcessTable(config.dataDir), say);
  const stop = async (): Promise<void> => {
    supervisor.close();
    for (const names of stopOrder) await supervisor.stop(names);
  };
  try {
    const book = openPortBook(config.dataDir, say);
    const portOf = await settlePorts(book);
    const stores = await startDataStores({ config, supervisor, ports: book, derive }, [service]);
    const { dataDir, rateLimitScale, commonEnvironment: common } = config;
    const around = { ...stores, dataDir, portOf, rateLimitScale, derive, common };
    const logsDir = path.join(dataDir, 'logs');
    const startHost = async (host: NodeProgram): Promise<void> => {
      await supervisor.keepRunning(nodeMember(host, logsDir, say));
      await waitUntilReady(supervisor, host.name, host.port, path.join(logsDir, `${host.name}.log`));
    };
    await Promise.all(listHosts(service, around).map(startHost));
    const programs = listPrograms(around);
    const environmentOf = (name: string) => ({ ...programs.find((program) => program.name === name)?.environment });
    const environment = environmentOf(service);
    await runMigrations(inRepo(`services/${service}`), environment['DATABASE_URL'] ?? '');
    const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
    return { environment: { owner, port: portOf(service), environment, workerEnvironment: environmentOf(`${service}-worker`) }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
