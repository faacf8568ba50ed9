import type { Server as HttpServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { adminRoutes, diskRoutes, type FindDisk, parseAdmin } from '../protocol/admin-routes';
import {
  type Call,
  createCallLog,
  emptyReply,
  jsonReply,
  matchRoute,
  type PathValues,
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
import { isOneOf, isSame, type TokenHolder } from '../protocol/tokens';
import { proxmoxRoutes } from './proxmox-routes';
import {
  openWorld,
  type ProxmoxWorld,
  proxmoxStateSchema,
  startTask,
  type TaskSeconds,
  templates,
  type Vm,
} from './proxmox-world';
import { forbidden, noSuchUri, unauthorized } from './shapes';

const vmChange = z
  .strictObject({
    status: z.enum(['running', 'stopped']),
    qmpstatus: z.string(),
    lock: z.string().nullable(),
    isProtected: z.boolean(),
    node: z.string(),
    isTemplate: z.boolean(),
    addresses: z.array(z.string()).nullable(),
  })
  .partial();
const nodeChange = z.strictObject({ isDown: z.boolean(), isSilent: z.boolean() }).partial();
const clusterChange = z.strictObject({ resizesAtOnce: z.boolean() });
const snapshotChange = z.strictObject({ snapstate: z.string().nullable(), parent: z.string().nullable() }).partial();

/**
 * Routes for events that Drydock does not cause: power failures, foreign locks, migrations, snapshots that never become
 * ready, VMs that disappear, failing nodes, manual work of staff.
 */
const proxmoxAdminRoutes = (world: ProxmoxWorld): Route[] => {
  const missing = (): Refusal => new Refusal(jsonReply(404, { error: 'no such object' }));
  const vmAt = (values: PathValues): Vm => {
    const vm = world.state.vms.find(({ vmid }) => String(vmid) === pathValue(values, 'id'));
    if (vm === undefined) throw missing();
    return vm;
  };
  return [
    routeAt('PATCH', '/emulator/servers/:id', (call, values) => {
      Object.assign(vmAt(values), parseAdmin(vmChange, call));
      world.save();
      return emptyReply(204);
    }),
    routeAt('DELETE', '/emulator/servers/:id', (_call, values) => {
      world.state.vms = world.state.vms.filter((vm) => vm !== vmAt(values));
      world.save();
      return emptyReply(204);
    }),
    routeAt('POST', '/emulator/servers/:id/snapshots/:name/rollback', (_call, values) => {
      startTask(world, vmAt(values), {
        type: 'qmrollback',
        account: null,
        snapname: pathValue(values, 'name'),
        lock: 'rollback',
      });
      return emptyReply(204);
    }),
    routeAt('PATCH', '/emulator/cluster', (call) => {
      Object.assign(world, parseAdmin(clusterChange, call));
      return emptyReply(204);
    }),
    routeAt('PATCH', '/emulator/nodes/:node', (call, values) => {
      const { isDown, isSilent } = parseAdmin(nodeChange, call);
      const change = (nodes: Set<string>, isIn: boolean | undefined): void => {
        if (isIn === true) nodes.add(pathValue(values, 'node'));
        if (isIn === false) nodes.delete(pathValue(values, 'node'));
      };
      change(world.downNodes, isDown);
      change(world.silentNodes, isSilent);
      return emptyReply(204);
    }),
    routeAt('PATCH', '/emulator/servers/:id/snapshots/:name', (call, values) => {
      const snapshot = vmAt(values).snapshots.find(({ name }) => name === pathValue(values, 'name'));
      if (snapshot === undefined) throw missing();
      Object.assign(snapshot, parseAdmin(snapshotChange, call));
      world.save();
      return emptyReply(204);
    }),
  ];
};

interface ProxmoxOptions {
  stateDir: string;
  /** The secret of each account's API token. The token is `PVEAPIToken=<account>@pve!drydock=<secret>`. */
  tokens: ReadonlyMap<string, string>;
  /** The secrets of tokens with the role PVEAuditor. The token is `PVEAPIToken=<account>@pve!reader=<secret>`. */
  readerTokens?: ReadonlyMap<string, string> | undefined;
  adminToken: string;
  clockScale: number;
  taskSeconds: TaskSeconds;
}

/** The delay of an answer to a wrong token, as in Proxmox. The delay slows down guessing. */
const refusalMs = 3_000;

function holderIn(
  { tokens, readerTokens = new Map() }: Pick<ProxmoxOptions, 'tokens' | 'readerTokens'>,
  { headers }: Call,
): TokenHolder | undefined {
  const [, name = '', token, secret = ''] =
    /^PVEAPIToken=([^@]+)@pve!(drydock|reader)=(\S+)$/.exec(headers['authorization'] ?? '') ?? [];
  const mayChange = token === 'drydock';
  const known = (mayChange ? tokens : readerTokens).get(name);
  return known !== undefined && isOneOf(known, secret) ? { name, mayChange } : undefined;
}

/** Answers a call of an account. Tasks that are due by now end first. */
function answerAccount(world: ProxmoxWorld, account: string, call: Call): Reply {
  world.endDue();
  const routes = proxmoxRoutes.map(
    ({ method, pattern, handle }): Route => ({
      method,
      pattern,
      handle: (given, values) => handle(world, account, given, values),
    }),
  );
  const match = matchRoute(routes, call);
  if (match.kind !== 'found') throw noSuchUri();
  // Every handler of the protocol is synchronous, so two calls never interleave.
  const reply = match.handle();
  if (reply instanceof Promise) throw new Error('a handler of the protocol waits');
  return reply;
}

/**
 * Emulates the part of Proxmox VE's API that Drydock uses. The emulator's state is in `stateDir`. The returned server
 * does not listen yet.
 */
export function createProxmoxEmulator({
  stateDir,
  tokens,
  readerTokens,
  adminToken,
  clockScale,
  taskSeconds,
}: ProxmoxOptions): HttpServer {
  const file = openStateFile(stateDir, proxmoxStateSchema);
  const state = file.read(() => ({
    clock: startOfClock(clockScale),
    lastPid: 1_000,
    lastEntry: null,
    vms: templates(),
    tasks: [],
  }));
  const clock = openClock(state.clock);
  const ledger = openLedger(stateDir, state.lastEntry);
  const world = openWorld(state, { clock, file, ledger, taskSeconds });
  const [faults, calls] = [createFaultOrders(), createCallLog()];

  const findDisk: FindDisk = (_call, id) => {
    world.endDue();
    const vm = world.state.vms.find(({ vmid }) => String(vmid) === id);
    if (vm === undefined) throw new Refusal(jsonReply(404, { error: 'no such server' }));
    return {
      disk: vm.disk,
      save: (disk) => {
        vm.disk = disk;
        world.save();
      },
    };
  };
  const guarded = (route: Route): Route => ({
    ...route,
    handle: (call, values) =>
      isSame(call.headers['authorization'] ?? '', `Bearer ${adminToken}`)
        ? route.handle(call, values)
        : jsonReply(401, { error: 'admin token required' }),
  });
  return createEmulatorServer({
    faults,
    calls,
    adminRoutes: [
      ...diskRoutes(findDisk),
      ...adminRoutes({ clock, faults, calls, ledger, save: () => world.save() }),
      ...proxmoxAdminRoutes(world),
    ].map(guarded),
    answer: async (call) => {
      const holder = holderIn({ tokens, readerTokens }, call);
      if (holder !== undefined && !holder.mayChange && call.method !== 'GET') throw forbidden(call.path, 'VM.Allocate');
      if (holder !== undefined) return answerAccount(world, holder.name, call);
      await wait(refusalMs);
      return unauthorized();
    },
  });
}
