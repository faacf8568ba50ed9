import type { Server as HttpServer } from 'node:http';
import { z } from 'zod';
import { adminRoutes, diskRoutes, type FindDisk, parseAdmin } from '../protocol/admin-routes';
import {
  type Call,
  createCallLog,
  emptyReply,
  jsonReply,
  matchRoute,
  pathValue,
  Refusal,
  type Reply,
  type Route,
  routeAt,
} from '../protocol/call';
import { openClock, startOfClock } from '../protocol/clock';
import { createEmulatorServer } from '../protocol/emulator-server';
import { createFaultOrders } from '../protocol/faults';
import { openLedger, openStateFile } from '../protocol/state-file';
import { holderOf, isSame } from '../protocol/tokens';
import { catalogueRoutes, imageRoutes } from './catalogue-routes';
import { errorReply, refused } from './hetzner-errors';
import {
  type ActionSeconds,
  type HetznerWorld,
  hetznerStateSchema,
  openWorld,
  requireServer,
  serverStatuses,
} from './hetzner-world';
import { actionRoutes, serverRoutes } from './server-routes';

/**
 * The rate limit. Each project has a budget of `perHour` calls. An empty budget fills evenly within an hour of the
 * emulator's time.
 */
interface RateLimit {
  /**
   * Takes one call from the budget, unless the budget is empty. Returns the provider's headers. `ratelimit-reset` is
   * the time at which the budget is full again, in seconds since 1970 of real time.
   */
  take(project: string): { isAllowed: boolean; headers: Record<string, string> };
  /** Returns the largest number of calls that were accepted within one hour so far. */
  peakPerHour(project: string): number;
  setPerHour(perHour: number): void;
}

const hourMs = 3_600_000;

function createRateLimit(
  perHourAtFirst: number,
  clock: { now(): number; readonly anchor: { scale: number } },
): RateLimit {
  let perHour = perHourAtFirst;
  const projects = new Map<string, { left: number; at: number; passed: number[]; peak: number }>();
  const budgetOf = (project: string, now: number) => {
    const budget = projects.get(project) ?? { left: perHour, at: now, passed: [], peak: 0 };
    projects.set(project, budget);
    return budget;
  };
  return {
    take: (project) => {
      const now = clock.now();
      const budget = budgetOf(project, now);
      budget.left = Math.min(perHour, budget.left + ((now - budget.at) * perHour) / hourMs);
      budget.at = now;
      const isAllowed = budget.left >= 1;
      if (isAllowed) {
        budget.left -= 1;
        budget.passed = [...budget.passed.filter((at) => at > now - hourMs), now];
        budget.peak = Math.max(budget.peak, budget.passed.length);
      }
      const untilFullMs = (((perHour - budget.left) / perHour) * hourMs) / Math.max(clock.anchor.scale, 0.001);
      return {
        isAllowed,
        headers: {
          'ratelimit-limit': String(perHour),
          'ratelimit-remaining': String(Math.floor(budget.left)),
          'ratelimit-reset': String(Math.ceil((Date.now() + untilFullMs) / 1_000)),
        },
      };
    },
    peakPerHour: (project) => projects.get(project)?.peak ?? 0,
    setPerHour: (next) => {
      perHour = next;
      projects.clear();
    },
  };
}

const serverChange = z
  .strictObject({
    status: z.enum(serverStatuses),
    isHiddenLocked: z.boolean(),
    isProtected: z.boolean(),
    labels: z.record(z.string(), z.string()),
    ipv4: z.string().nullable(),
    ipv6: z.string().nullable(),
  })
  .partial();

const imageChange = z
  .strictObject({
    status: z.enum(['creating', 'available', 'unavailable']),
    architecture: z.enum(['x86', 'arm']),
    diskSize: z.number().positive(),
    isDeleteProtected: z.boolean(),
    created: z.number(),
    description: z.string(),
  })
  .partial();

const limitChange = z.strictObject({ perHour: z.int().min(1) });
const missing = (): Refusal => new Refusal(jsonReply(404, { error: 'no such object' }));

/**
 * Routes for events that Drydock does not cause: power failures, hidden locks, images that never become ready, machines
 * that disappear.
 */
const hetznerAdminRoutes = (world: HetznerWorld, limit: RateLimit): Route[] => [
  routeAt('PATCH', '/emulator/servers/:id', (call, values) => {
    const server = world.state.servers.find(({ id }) => String(id) === pathValue(values, 'id'));
    if (server === undefined) throw missing();
    Object.assign(server, parseAdmin(serverChange, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('DELETE', '/emulator/servers/:id', (_call, values) => {
    world.state.servers = world.state.servers.filter(({ id }) => String(id) !== pathValue(values, 'id'));
    world.save();
    return emptyReply(204);
  }),
  routeAt('PATCH', '/emulator/images/:id', (call, values) => {
    const image = world.state.images.find(({ id }) => String(id) === pathValue(values, 'id'));
    if (image === undefined) throw missing();
    Object.assign(image, parseAdmin(imageChange, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('PUT', '/emulator/rate-limit', (call) => {
    limit.setPerHour(parseAdmin(limitChange, call).perHour);
    return emptyReply(204);
  }),
  routeAt('GET', '/emulator/rate-limit/:project', (_call, values) =>
    jsonReply(200, { peakPerHour: limit.peakPerHour(pathValue(values, 'project')) }),
  ),
];

interface HetznerOptions {
  stateDir: string;
  /** Tokens by project. */
  tokens: ReadonlyMap<string, string>;
  /** Tokens that can only read, by project. */
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

/** Answers a call of a project. Actions that are due by now end first. */
function answerProject(world: HetznerWorld, project: string, call: Call): Reply {
  world.endDue();
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
  // Every handler of the protocol is synchronous, so two calls never interleave.
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

/**
 * Emulates the part of the Hetzner Cloud API that Drydock uses. The emulator's state is in `stateDir`. The returned
 * server does not listen yet.
 */
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
    world.endDue();
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
        : errorReply('rate_limit_exceeded', `limit of ${headers['ratelimit-limit']} requests per hour reached`);
      return { ...reply, headers: { ...reply.headers, ...headers, 'x-correlation-id': String(calls.list().length) } };
    },
  });
}
