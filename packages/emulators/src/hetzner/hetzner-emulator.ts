import type { Server as HttpServer } from 'node:http';
import { adminRoutes } from '../protocol/admin-routes';
import { type Call, jsonReply, Refusal, type Reply } from '../protocol/call';
import { createCallLog } from '../protocol/call-log';
import { openClock, startOfClock } from '../protocol/clock';
import { diskRoutes, type FindDisk } from '../protocol/disk';
import { createEmulatorServer } from '../protocol/emulator-server';
import { createFaultOrders } from '../protocol/fault-orders';
import { openLedger } from '../protocol/ledger';
import { matchRoute, type Route } from '../protocol/routes';
import { openStateFile } from '../protocol/state-file';
import { holderOf, isSame } from '../protocol/tokens';
import { actionRoutes } from './action-routes';
import { catalogueRoutes } from './catalogue-routes';
import { hetznerAdminRoutes } from './hetzner-admin';
import { errorReply, refused } from './hetzner-errors';
import { hetznerStateSchema } from './hetzner-state';
import { type ActionSeconds, type HetznerWorld, openWorld, requireServer } from './hetzner-world';
import { imageRoutes } from './image-routes';
import { createRateLimit } from './rate-limit';
import { serverRoutes } from './server-routes';

export interface HetznerOptions {
  stateDir: string;
  /** Project to its token. */
  tokens: ReadonlyMap<string, string>;
  /** Project to a token that can only read. */
  readerTokens?: ReadonlyMap<string, string>;
  adminToken: string;
  clockScale: number;
  callsPerHour: number;
  actionSeconds: ActionSeconds;
}

const bearerOf = ({ headers }: Call): string => /^Bearer (\S+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';

const projectOf = (tokens: HetznerOptions['tokens'], call: Call): string | undefined =>
  holderOf(bearerOf(call), tokens)?.name;

const protocolRoutes = [...serverRoutes, ...actionRoutes, ...imageRoutes, ...catalogueRoutes];

/** A call by one project, on a world that is up to date. */
function answerProject(world: HetznerWorld, project: string, call: Call): Reply {
  world.settle();
  const routes = protocolRoutes.map(
    ({ method, pattern, handle }): Route => ({
      method,
      pattern,
      handle: (given, values) => handle(world, project, given, values),
    }),
  );
  const match = matchRoute(routes, call);
  if (match.kind === 'wrong_method') throw refused('method_not_allowed', 'method not allowed');
  if (match.kind === 'unknown') throw refused('not_found', 'unknown path');
  // Every handler of the protocol is synchronous, so two calls never mix.
  const reply = match.handle();
  if (reply instanceof Promise) throw new Error('a handler of the protocol waits');
  return reply;
}

function answered(work: () => Reply): Reply {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return error.reply;
    throw error;
  }
}

/** Speaks the part of the Hetzner Cloud API that Drydock uses, with its state in a folder. It does not listen yet. */
export function createHetznerEmulator(options: HetznerOptions): HttpServer {
  const { stateDir, tokens, readerTokens, adminToken } = options;
  const file = openStateFile(stateDir, hetznerStateSchema);
  const state = file.read(() => ({
    clock: startOfClock(options.clockScale),
    lastId: 1_000,
    lastEntry: null,
    servers: [],
    images: [],
    actions: [],
  }));
  const clock = openClock(state.clock);
  const ledger = openLedger(stateDir, state.lastEntry);
  const world = openWorld(state, { clock, file, ledger, actionSeconds: options.actionSeconds });
  const limit = createRateLimit(options.callsPerHour, clock);
  const [faults, calls] = [createFaultOrders(), createCallLog()];

  const findDisk: FindDisk = (call, id) => {
    world.settle();
    const project = projectOf(tokens, call);
    const server =
      project === undefined
        ? world.state.servers.find((candidate) => String(candidate.id) === id)
        : requireServer(world, project, id);
    if (server === undefined) throw new Refusal(jsonReply(404, { error: 'no such server' }));
    return {
      disk: server.disk,
      save: (disk) => {
        server.disk = disk;
        world.save();
      },
    };
  };
  const guarded = (route: Route, isOpenToProjects: boolean): Route => ({
    ...route,
    handle: (call, values) => {
      const isAllowed =
        isSame(bearerOf(call), adminToken) || (isOpenToProjects && projectOf(tokens, call) !== undefined);
      return isAllowed ? route.handle(call, values) : jsonReply(401, { error: 'admin token required' });
    },
  });

  return createEmulatorServer({
    faults,
    calls,
    adminRoutes: [
      ...diskRoutes(findDisk).map((route) => guarded(route, true)),
      ...adminRoutes({ clock, faults, calls, ledger, save: () => world.save() }).map((route) => guarded(route, false)),
      ...hetznerAdminRoutes(world, limit).map((route) => guarded(route, false)),
    ],
    answer: (call) => {
      const holder = holderOf(bearerOf(call), tokens, readerTokens);
      if (holder === undefined) return errorReply('unauthorized', 'unable to authenticate');
      if (!holder.mayChange && call.method !== 'GET')
        return errorReply('token_readonly', 'token is only allowed to perform GET requests');
      const project = holder.name;
      const { isAllowed, headers } = limit.take(project);
      const reply = isAllowed
        ? answered(() => answerProject(world, project, call))
        : errorReply('rate_limit_exceeded', 'limit of 3600 requests per hour reached');
      return { ...reply, headers: { ...reply.headers, ...headers, 'x-correlation-id': String(calls.list().length) } };
    },
  });
}
