import type { RequestListener, Server } from 'node:http';
import { problem } from '@drydock/contracts/platform/problem';
import { answerOfProblem } from '../http/answer';
import { type ExchangeKit, runExchange } from '../http/exchange';
import { closeServer, createHttpServer, listen } from '../http/http-server';
import type { Log } from '../telemetry/log';
import { answerHealth, answerReady, type ReadyChecks } from './health';

export interface HealthServer {
  server: Server;
  listen(port: number, host?: string): Promise<{ url: string; port: number }>;
  close(): Promise<void>;
}

/** A page for operators beside the probes, at `path` and below; it decides itself who may see it. */
export interface Mounted {
  path: `/${string}`;
  handle: RequestListener;
}

const isBelow = (path: string, url = ''): boolean =>
  url === path || url.startsWith(`${path}/`) || url.startsWith(`${path}?`);

/** `/healthz` and `/readyz` of a process that does not answer customers: a worker. */
export function createHealthServer(options: {
  log: Log;
  ready: ReadyChecks;
  mounted?: Mounted | undefined;
}): HealthServer {
  let closing = false;
  // Probes come every second, so only failures are logged.
  const log = options.log.child({}, { level: 'warn' });
  const kit: ExchangeKit = { log, isClosing: () => closing };
  const server = createHttpServer((request, response) => {
    if (options.mounted !== undefined && isBelow(options.mounted.path, request.url))
      return options.mounted.handle(request, response);
    runExchange(kit, request, response, request.url ?? '', async (exchange) => {
      if (request.url === '/healthz') return answerHealth();
      if (request.url === '/readyz') return answerReady(options.ready, closing, log);
      return answerOfProblem(problem('route_not_found'), exchange.context.request_id);
    });
  });
  return {
    server,
    listen: (port, host) => listen(server, port, host),
    close: () => {
      closing = true;
      return closeServer(server);
    },
  };
}
