import type { Server as HttpServer } from 'node:http';
import { z } from 'zod';
import { adminRoutes, parseAdmin } from '../protocol/admin-routes';
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
import { holderOf, isSame } from '../protocol/tokens';
import { packageRoutes, timelineRoutes } from './package-routes';
import {
  addPoint,
  type Item,
  newItem,
  openPackageContent,
  openVendorWorld,
  type Package,
  packageFlagsSchema,
  scopeSchema,
  type VendorWorld,
  vendorStateSchema,
} from './vendor-world';

const pattern = /^\/preview\/(\d+)\/(.*)$/;

const isPreview = ({ path }: Call): boolean => pattern.test(path);

/** Answers a request of a visitor for a page of a package. */
function answerPreview(world: VendorWorld, call: Call): Reply {
  world.endDue();
  const [, id = '', rest = ''] = pattern.exec(call.path) ?? [];
  const found = world.state.packages.find((candidate) => String(candidate.id) === id);
  const page =
    found === undefined
      ? null
      : world.content.readPage(found.id, rest === '' ? 'index.html' : decodeURIComponent(rest));
  if (page === null) return jsonReply(404, { error: 'no such page' });
  return { status: 200, headers: { 'content-type': typeOf(rest) }, body: page.toString('utf8') };
}

const typeOf = (file: string): string =>
  file.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/html; charset=utf-8';

/** A relative file name that does not lead out of its folder. */
const fileNameSchema = z.string().regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$))[^\0]+$/);
const filesSchema = z.record(fileNameSchema, z.string());
/** The content of a package. A database's files are its tables as JSON, and a mailbox's files are its messages. */
const contentSchema = z.strictObject({
  web: filesSchema,
  databases: z.record(z.string(), filesSchema),
  mailboxes: z.record(z.string(), filesSchema),
});
const changeSchema = z
  .strictObject({
    flags: packageFlagsSchema.partial(),
    failsNextJob: z.boolean(),
    item: z.strictObject({
      scope: scopeSchema,
      id: z.string(),
      isDead: z.boolean().optional(),
      isRestorable: z.boolean().optional(),
    }),
    /** Removes a restore point, as the vendor does when the point is too old. */
    forget: z.strictObject({ scope: scopeSchema, id: z.string(), restoreAsOf: z.int() }),
  })
  .partial();

const missing = (what: string): Refusal => new Refusal(jsonReply(404, { error: `no such ${what}` }));

function packageOf({ state }: VendorWorld, values: PathValues): Package {
  const found = state.packages.find(({ id }) => String(id) === pathValue(values, 'id'));
  if (found === undefined) throw missing('package');
  return found;
}

function itemOf(found: Package, wanted: Pick<Item, 'scope' | 'id'>): Item {
  const item = found.items.find(({ scope, id }) => scope === wanted.scope && id === wanted.id);
  if (item === undefined) throw missing('timeline');
  return item;
}

function readContent({ content }: VendorWorld, found: Package): z.infer<typeof contentSchema> {
  const of = (scope: Item['scope']) =>
    Object.fromEntries(
      found.items
        .filter((item) => item.scope === scope)
        .map((item) => [item.name, { ...content.read(found.id, item) }]),
    );
  const web = found.items.find(({ scope }) => scope === 'web');
  return {
    web: web === undefined ? {} : { ...content.read(found.id, web) },
    databases: of('database'),
    mailboxes: of('mailbox'),
  };
}

/**
 * Replaces a package's content. Databases and mailboxes that are missing in `wanted` are removed with their timelines.
 * All other databases and mailboxes keep their timelines.
 */
function writeContent(world: VendorWorld, found: Package, wanted: z.infer<typeof contentSchema>): void {
  const kept: Array<[Item, Record<string, string>]> = [
    [found.items.find(({ scope }) => scope === 'web') ?? newItem('web', '', found.domain), wanted.web],
  ];
  for (const [scope, items] of [['database', wanted.databases] as const, ['mailbox', wanted.mailboxes] as const]) {
    for (const [name, files] of Object.entries(items)) {
      const there = found.items.find((item) => item.scope === scope && item.name === name);
      kept.push([there ?? newItem(scope, scope === 'database' ? String(world.nextId()) : name, name), files]);
    }
  }
  for (const item of found.items) if (!kept.some(([one]) => one === item)) world.content.removeItem(found.id, item);
  for (const [item, files] of kept) world.content.write(found.id, item, files);
  found.items = kept.map(([item]) => item);
}

/**
 * Routes for events that Drydock does not cause: owners change their content, restore points come and go, timelines
 * break.
 */
const vendorAdminRoutes = (world: VendorWorld): Route[] => [
  routeAt('GET', '/emulator/packages', () =>
    jsonReply(200, { packages: world.state.packages.map(({ id, account, domain }) => ({ id, account, domain })) }),
  ),
  routeAt('GET', '/emulator/packages/:id/content', (_call, values) => {
    world.endDue();
    return jsonReply(200, readContent(world, packageOf(world, values)));
  }),
  routeAt('PUT', '/emulator/packages/:id/content', (call, values) => {
    world.endDue();
    writeContent(world, packageOf(world, values), parseAdmin(contentSchema, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('POST', '/emulator/packages/:id/points', (_call, values) => {
    world.endDue();
    const found = packageOf(world, values);
    for (const item of found.items) addPoint(world, found, item, 'automatic', world.clock.now());
    world.save();
    return emptyReply(204);
  }),
  routeAt('PATCH', '/emulator/packages/:id', (call, values) => {
    const found = packageOf(world, values);
    const { flags = {}, failsNextJob, item, forget } = parseAdmin(changeSchema, call);
    Object.assign(found.flags, flags);
    if (failsNextJob !== undefined) found.failsNextJob = failsNextJob;
    if (item !== undefined) Object.assign(itemOf(found, item), item);
    if (forget !== undefined) {
      const aged = itemOf(found, forget);
      aged.points = aged.points.filter(({ restoreAsOf }) => restoreAsOf !== forget.restoreAsOf);
    }
    world.save();
    return emptyReply(204);
  }),
];

interface VendorEmulatorOptions {
  stateDir: string;
  /** Keys by account. */
  keys: ReadonlyMap<string, string>;
  /** Keys that can only read, by account. */
  readerKeys?: ReadonlyMap<string, string>;
  adminToken: string;
  clockScale: number;
  /** The duration of a snapshot or restore in seconds of the emulator's time. */
  jobSeconds: number;
}

const bearerOf = ({ headers }: Call): string => /^Bearer (\S+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';
const accountRoutes = [...packageRoutes, ...timelineRoutes];

/** Answers a call of an account. Jobs that are due by now end first. */
function answerAccount(world: VendorWorld, account: string, call: Call): Reply | Promise<Reply> {
  world.endDue();
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

/** Emulates the vendor's API of packages and timelines. Its state is in `stateDir`, and survives a restart. */
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
