import type { Server as HttpServer } from 'node:http';
import { adminRoutes } from '../protocol/admin-routes';
import { type Call, jsonReply, Refusal, type Reply } from '../protocol/call';
import { createCallLog } from '../protocol/call-log';
import { openClock, startOfClock } from '../protocol/clock';
import { createEmulatorServer } from '../protocol/emulator-server';
import { createFaultOrders } from '../protocol/fault-orders';
import { openLedger } from '../protocol/ledger';
import { matchRoute, type Route } from '../protocol/routes';
import { openStateFile } from '../protocol/state-file';
import { holderOf, isSame } from '../protocol/tokens';
import { openPackageContent } from './package-content';
import { packageRoutes } from './package-routes';
import { answerPreview, isPreview } from './preview';
import { timelineRoutes } from './timeline-routes';
import { vendorAdminRoutes } from './vendor-admin';
import { vendorStateSchema } from './vendor-state';
import { openVendorWorld, type VendorWorld } from './vendor-world';

export interface VendorEmulatorOptions {
  stateDir: string;
  /** Account to its key. */
  keys: ReadonlyMap<string, string>;
  /** Account to a key that can only read. */
  readerKeys?: ReadonlyMap<string, string>;
  adminToken: string;
  clockScale: number;
  /** How long a snapshot or a restore takes, in seconds of the emulator's time. */
  jobSeconds: number;
}

const bearerOf = ({ headers }: Call): string => /^Bearer (\S+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';
const accountRoutes = [...packageRoutes, ...timelineRoutes];

/** A call by one account, on a world that is up to date. */
function answerAccount(world: VendorWorld, account: string, call: Call): Reply | Promise<Reply> {
  world.settle();
  const routes = accountRoutes.map(
    ({ method, pattern, handle }): Route => ({
      method,
      pattern,
      handle: (given, values) => handle(world, account, given, values),
    }),
  );
  const match = matchRoute(routes, call);
  if (match.kind === 'found') return match.handle();
  throw new Refusal(
    jsonReply(match.kind === 'unknown' ? 404 : 405, { error: { message: 'no such route' }, type: 'error' }),
  );
}

/** The vendor's packages and timelines over HTTP. Its whole state is in `stateDir`, and outlives it. */
export function createVendorEmulator({
  stateDir,
  keys,
  readerKeys,
  adminToken,
  clockScale,
  jobSeconds,
}: VendorEmulatorOptions): HttpServer {
  const file = openStateFile(stateDir, vendorStateSchema);
  const state = file.read(() => ({ clock: startOfClock(clockScale), lastId: 1_000, lastEntry: null, packages: [] }));
  const clock = openClock(state.clock);
  const ledger = openLedger(stateDir, state.lastEntry);
  const world = openVendorWorld(state, { clock, file, ledger, content: openPackageContent(stateDir), jobSeconds });
  const [faults, calls] = [createFaultOrders(), createCallLog()];
  const guarded = (route: Route): Route => ({
    ...route,
    handle: (call, values) =>
      isSame(bearerOf(call), adminToken)
        ? route.handle(call, values)
        : jsonReply(401, { error: 'admin token required' }),
  });
  return createEmulatorServer({
    faults,
    calls,
    adminRoutes: [
      ...vendorAdminRoutes(world),
      ...adminRoutes({ clock, faults, calls, ledger, save: () => world.save() }),
    ].map(guarded),
    answer: (call) => {
      if (isPreview(call)) return answerPreview(world, call);
      const holder = holderOf(bearerOf(call), keys, readerKeys);
      if (holder === undefined) return jsonReply(401, { error: { message: 'unauthorized' }, type: 'error' });
      if (!holder.mayChange && call.method !== 'GET')
        return jsonReply(403, { error: { message: 'forbidden' }, type: 'error' });
      return answerAccount(world, holder.name, call);
    },
  });
}
