import { endpoints } from '@drydock/contracts/endpoints';
import type { Database } from '../database/sql';
import { type ApiConfig, isDevelopment, type ServiceConfig } from '../process/config';
import { databaseReady, type Foundation, type Process } from '../process/run-process';
import { findUnmounted } from './route';
import { createService, type Service, type ServiceOptions } from './service';

export interface ApiProcess extends Process {
  service: Service;
}

/** Work of a process that is not part of a request. */
interface Beside {
  start(): void;
  stop(): unknown;
}

interface ApiOptions<Tx>
  extends Pick<ServiceOptions<Tx>, 'name' | 'routes' | 'internalRoutes' | 'streams' | 'changed'> {
  /**
   * Work that runs beside the requests. Each key is the name of the work in the log. The work starts right before the
   * first request is accepted. It stops once no caller is connected or the drain is over, and before the server closes.
   */
  beside?: Readonly<Record<string, Beside>>;
}

/**
 * How long running requests may continue while the process closes. The rest of `shutdownLimitMs` is for the resources
 * that are closed afterwards, such as the database.
 */
const closeMs = 15_000;

/**
 * Composes the process that answers requests. Everything that the handlers use must have been opened before, and is
 * closed after the server.
 */
export function composeApiProcess<Tx>(
  { log, lifetime, database }: Foundation<Database<Tx>>,
  config: Pick<ServiceConfig, 'HOST' | 'PORT' | 'INTERNAL_TOKEN_SECRET'> & ApiConfig,
  { beside = {}, ...served }: ApiOptions<Tx>,
): ApiProcess {
  const mounted = served.routes.map(({ endpoint }) => endpoint);
  const service = createService({
    ...served,
    unmounted: findUnmounted(served.name, mounted, endpoints, isDevelopment()),
    database,
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: databaseReady(database),
  });
  lifetime.onClose('http', () => service.close(), closeMs);
  for (const [name, work] of Object.entries(beside)) lifetime.onClose(name, () => work.stop());
  const drainMs = config.DRAIN_SECONDS * 1_000;
  lifetime.onClose('drain', () => service.drain(drainMs), drainMs + 1_000);
  return {
    log,
    lifetime,
    service,
    start: () => {
      for (const work of Object.values(beside)) work.start();
      return service.listen(config.PORT, config.HOST);
    },
  };
}
