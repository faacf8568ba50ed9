import path from 'node:path';
import { proveProcess } from '@drydock/embedded/process-proof';
import { runMigrations } from '@drydock/migrations/run-migrations';
import { claimDataFolder } from './claim-data-folder';
import { startDataStores } from './data-stores';
import { openMasterKey } from './derive-secret';
import type { DevConfig } from './dev-config';
import type { DevEnvironment } from './dev-environment';
import { nodeMember } from './node-member';
import { openPortBook } from './ports';
import { openProcessTable } from './process-table';
import { inRepo } from './repo-root';
import { listPrograms, type ServiceWithDatabase, stopOrder } from './service-programs';
import { createSupervisor } from './supervisor';
import { waitUntilReady } from './wait-until-ready';

/** What one service owns, brought up for it alone. */
export interface DevStores {
  environment: DevEnvironment;
  stop(): Promise<void>;
}

/** Brings up Postgres, the queue and, for hosting, the site host; migrates this one service. No other service runs: calls to them fail. */
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
    const ports = {
      gateway: await book.settle('gateway'),
      keys: await book.settle('keys'),
      hosting: await book.settle('hosting'),
      'hosting-worker': await book.settle('hosting-worker'),
      'site-host': await book.settle('site-host'),
    };
    const stores = await startDataStores({ config, supervisor, ports: book, derive }, [service]);
    const { dataDir, rateLimitScale, commonEnvironment: common } = config;
    const programs = listPrograms({ ...stores, dataDir, ports, rateLimitScale, derive, common });
    const siteHost = programs.find(({ name }) => name === 'site-host');
    if (service === 'hosting' && siteHost !== undefined) {
      const logsDir = path.join(dataDir, 'logs');
      await supervisor.keepRunning(nodeMember(siteHost, logsDir, say));
      await waitUntilReady(supervisor, 'site-host', siteHost.port, path.join(logsDir, 'site-host.log'));
    }
    const environmentOf = (name: string) => ({ ...programs.find((program) => program.name === name)?.environment });
    const environment = environmentOf(service);
    await runMigrations(inRepo(`services/${service}`), environment['DATABASE_URL'] ?? '');
    const owner = proveProcess(process.pid) ?? { pid: process.pid, startedTicks: '' };
    return { environment: { owner, port: ports[service], environment, workerEnvironment: environmentOf(`${service}-worker`) }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
