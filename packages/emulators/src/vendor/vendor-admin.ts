import { z } from 'zod';
import { parseAdmin } from '../protocol/admin-routes';
import { emptyReply, jsonReply, Refusal } from '../protocol/call';
import { type PathValues, pathValue, type Route, routeAt } from '../protocol/routes';
import { addPoint } from './settle-jobs';
import { type Item, newItem, type Package, packageFlagsSchema, scopeSchema } from './vendor-state';
import type { VendorWorld } from './vendor-world';

/** Below its own folder. */
const fileNameSchema = z.string().regex(/^(?!\/)(?!.*(?:^|\/)\.\.(?:\/|$))[^\0]+$/);
const filesSchema = z.record(fileNameSchema, z.string());
/**
 * By the names of the databases and the mailboxes. A database's files are its tables as JSON, and a mailbox's files are
 * its messages.
 */
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
    /** Forgets a point, as the vendor does when a point becomes too old. */
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
 * Databases and mailboxes that are not named are removed, with their timelines. Those that stay keep their timelines.
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
 * Routes for events that Drydock does not cause: owners work on their packages, points come and go, timelines break.
 */
export const vendorAdminRoutes = (world: VendorWorld): Route[] => [
  routeAt('GET', '/emulator/packages', () =>
    jsonReply(200, { packages: world.state.packages.map(({ id, account, domain }) => ({ id, account, domain })) }),
  ),
  routeAt('GET', '/emulator/packages/:id/content', (_call, values) => {
    world.settle();
    return jsonReply(200, readContent(world, packageOf(world, values)));
  }),
  routeAt('PUT', '/emulator/packages/:id/content', (call, values) => {
    world.settle();
    writeContent(world, packageOf(world, values), parseAdmin(contentSchema, call));
    world.save();
    return emptyReply(204);
  }),
  routeAt('POST', '/emulator/packages/:id/points', (_call, values) => {
    world.settle();
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
