import type { RequestListener, Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { problem } from '@drydock/contracts/platform/problem';
import { scaled } from '@drydock/process';
import type { ReadyChecks } from '../process/run-process';
import type { Log } from '../telemetry/log';
import { type Answer, answerOf, answerOfProblem } from './answer';
import { type ExchangeKit, runExchange } from './exchange';
import { closeServer, createHttpServer, listen } from './http-server';

const checkMs = 1_000;

async function outcomeOf(
  name: string,
  check: () => Promise<unknown>,
  log: Log,
): Promise<'ok' | 'failed' | 'timed_out'> {
  const timer = new AbortController();
  const late = wait(scaled(checkMs), 'timed_out' as const, { signal: timer.signal, ref: false }).catch(
    () => 'timed_out' as const,
  );
  const done = Promise.resolve()
    .then(check)
    .then(
      () => 'ok' as const,
      (error: unknown) => {
        log.warn({ err: error, check: name }, 'not ready');
        return 'failed' as const;
      },
    );
  const outcome = await Promise.race([done, late]);
  timer.abort();
  if (outcome === 'timed_out') log.warn({ check: name }, 'not ready: no answer in time');
  return outcome;
}

/**
 * The answer to a liveness probe. Dependencies are not checked, so that a lost database does not restart the process.
 */
export const answerHealth = (): Answer => answerOf({ status: 200, body: { status: 'ok' } });

/**
 * Answers 200 if all `checks` succeed and the process is not closing, and otherwise 503. Both answers have the outcome
 * of each check. The reasons are only in the log. The outcomes of `informative` checks do not change the status,
 * because only some requests need what they check.
 */
export async function answerReady(
  checks: ReadyChecks,
  isClosing: boolean,
  log: Log,
  informative: ReadyChecks = {},
): Promise<Answer> {
  const outcomes = await Promise.all(
    Object.entries({ ...checks, ...informative }).map(
      async ([name, check]) => [name, await outcomeOf(name, check, log)] as const,
    ),
  );
  const ready = !isClosing && outcomes.every(([name, outcome]) => outcome === 'ok' || name in informative);
  const status = isClosing ? 'closing' : ready ? 'ready' : 'not_ready';
  return answerOf({ status: ready ? 200 : 503, body: { status, checks: Object.fromEntries(outcomes) } });
}

interface HealthServer {
  server: Server;
  listen(port: number, host?: string): Promise<{ url: string; port: number }>;
  close(): Promise<void>;
}

/** A page for operators, at `path` and below. The page itself decides who may see it. */
export interface Mounted {
  path: `/${string}`;
  handle: RequestListener;
}

const isBelow = (path: string, url = ''): boolean =>
  url === path || url.startsWith(`${path}/`) || url.startsWith(`${path}?`);

/** The server of `/healthz` and `/readyz` for a process that answers no customers, such as a worker. */
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
