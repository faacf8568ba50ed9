import { z } from 'zod';
import { type Call, jsonReply, type PathValues, pathValue, Refusal } from '../protocol/call';
import {
  type AccountRoute,
  accountAt,
  type Item,
  isOf,
  isRunning,
  type Job,
  newItem,
  type Package,
  type Scope,
  startJob,
  type VendorWorld,
} from './vendor-world';

/** Returns a refusal in the vendor's form. The vendor has no error codes, only a status and a message. */
const refused = (status: 401 | 404 | 409 | 422, message: string): Refusal =>
  new Refusal(jsonReply(status, { error: { message }, type: 'error' }));

const addSchema = z.object({
  type: z.union([z.string(), z.int()]),
  domain_name: z.string().min(1),
  label: z.string().default(''),
});
const deleteSchema = z.object({ 'delete-id': z.array(z.union([z.string(), z.int()])).min(1) });
const firstPage = (domain: string): string =>
  `<!doctype html><title>${domain}</title><h1>${domain}</h1><p>This site is being built.</p>\n`;

/** Parses a JSON body. An empty body counts as `{}`. @throws Refusal 422 in the vendor's form */
function parseBody<T>(schema: z.ZodType<T>, call: Call): T {
  try {
    return schema.parse(JSON.parse(call.body.toString('utf8') || '{}'));
  } catch {
    throw refused(422, 'the request is malformed');
  }
}

/** Finds a package. A package of another account gets the same answer as a missing package. @throws Refusal 404 */
function requirePackage({ state }: VendorWorld, account: string, id: string): Package {
  const found = state.packages.find((candidate) => candidate.account === account && String(candidate.id) === id);
  if (found === undefined) throw refused(404, 'package not found');
  return found;
}

const view = ({ id, domain, label, createdAt }: Package, call: Call) => ({
  id,
  name: domain,
  names: [domain],
  label,
  created: new Date(createdAt).toISOString(),
  enabled: true,
  // At this address visitors see the site before its domain points to the vendor.
  preview_url: `http://${call.headers['host'] ?? ''}/preview/${id}/`,
});

export const packageRoutes: readonly AccountRoute[] = [
  accountAt('GET', '/package', (world, account, call) =>
    jsonReply(
      200,
      world.state.packages.filter((found) => found.account === account).map((found) => view(found, call)),
    ),
  ),
  accountAt('GET', '/package/:id', (world, account, call, values) =>
    jsonReply(200, view(requirePackage(world, account, pathValue(values, 'id')), call)),
  ),
  accountAt('POST', '/reseller/:reseller/addWeb', (world, account, call) => {
    const { domain_name: domain, label } = parseBody(addSchema, call);
    if (world.state.packages.some((found) => found.domain === domain))
      throw refused(409, `${domain} has a package already`);
    const flags = { available: true, permitted: true, pro: false, attached: true, isFull: false };
    const web = newItem('web', '', domain);
    const made = {
      id: world.nextId(),
      account,
      domain,
      label,
      createdAt: world.clock.now(),
      flags,
      items: [web],
      jobs: [],
      failsNextJob: false,
    };
    world.content.write(made.id, web, { 'index.html': firstPage(domain) });
    world.state.packages.push(made);
    world.save({ found: made, op: 'addWeb', jobId: '', detail: domain });
    return jsonReply(200, { result: made.id });
  }),
  accountAt('POST', '/reseller/:reseller/deleteWeb', (world, account, call) => {
    const ids = parseBody(deleteSchema, call)['delete-id'].map(String);
    const doomed = ids.map((id) => requirePackage(world, account, id));
    if (doomed.some(({ jobs }) => jobs.some(isRunning))) throw refused(409, 'a job is running on the package');
    for (const found of doomed) {
      world.state.packages = world.state.packages.filter((candidate) => candidate !== found);
      world.save({ found, op: 'deleteWeb', jobId: '', detail: found.domain });
      world.content.removePackage(found.id);
    }
    return jsonReply(200, { result: true });
  }),
];

const base = '/package/:id/web/timelineBackup';
const restoreSchema = z.object({
  action: z.enum(['restore', 'mysqlrestore']),
  restoreAsOf: z.int(),
  restorePath: z.string(),
  target: z
    .string()
    .regex(/^temp-/)
    .optional(),
});

const canBackUp = ({ flags, jobs }: Package): boolean =>
  flags.available && flags.permitted && flags.attached && !flags.isFull && !jobs.some(isRunning);

const viewItem = (found: Package, item: Item) => ({
  id: item.id,
  name: item.name,
  dead: item.isDead,
  restorable: item.isRestorable,
  running: found.jobs.some((job) => isRunning(job) && isOf(item)(job)),
  snapshots: item.points.map(({ restoreAsOf, kind }) => ({
    restoreAsOf,
    kind,
    taken: new Date(restoreAsOf * 1_000).toISOString(),
  })),
});

function viewTimeline(found: Package) {
  const of = (scope: Scope) => found.items.filter((item) => item.scope === scope).map((item) => viewItem(found, item));
  const { available, permitted, pro, attached } = found.flags;
  const [web = null] = of('web');
  return {
    available,
    permitted,
    pro,
    attached,
    can_back_up: canBackUp(found),
    has_dead_web: web?.dead ?? false,
    // A website is listed once it has a restore point, or while its first restore point is created.
    web: web !== null && (web.snapshots.length > 0 || web.running) ? web : null,
    databases: of('database'),
    mailboxes: of('mailbox'),
  };
}

const viewJob = ({ id, type, status, restoreAsOf, target, startedAt, endsAt }: Job) => ({
  id,
  type,
  status,
  restoreAsOf,
  target,
  started: new Date(startedAt).toISOString(),
  finished: status === 'running' ? null : new Date(endsAt).toISOString(),
});

interface Located {
  found: Package;
  item: Item;
}

/** Finds an item of a package. @throws Refusal 404 */
function locate(world: VendorWorld, account: string, values: PathValues, scope: Scope): Located {
  const found = requirePackage(world, account, pathValue(values, 'id'));
  const itemId = scope === 'web' ? '' : pathValue(values, 'item');
  const item = found.items.find((candidate) => candidate.scope === scope && candidate.id === itemId);
  if (item === undefined) throw refused(404, `no such ${scope}`);
  return { found, item };
}

const assertIdle = ({ found, item }: Located): void => {
  if (found.jobs.some((job) => isRunning(job) && isOf(item)(job)))
    throw refused(409, 'a job is running on this timeline');
};

const taking = (scope: 'web' | 'database', path: string): AccountRoute =>
  accountAt('POST', `${base}/${path}/takeSnapshot`, (world, account, _call, values) => {
    const located = locate(world, account, values, scope);
    assertIdle(located);
    if (!canBackUp(located.found)) throw refused(422, 'the package takes no snapshot now');
    const job = startJob(world, located.found, located.item, { type: 'takeSnapshot', restoreAsOf: null, target: null });
    return jsonReply(202, { result: job.id });
  });

const restoring = (scope: Scope, path: string): AccountRoute =>
  accountAt('POST', `${base}/${path}/restoreSnapshot`, (world, account, call, values) => {
    const located = locate(world, account, values, scope);
    const { action, restoreAsOf, target = null } = parseBody(restoreSchema, call);
    assertIdle(located);
    const { item } = located;
    if (!item.isRestorable || item.isDead) throw refused(422, 'this timeline cannot be restored');
    if ((action === 'mysqlrestore') !== (scope === 'database'))
      throw refused(422, `${action} does not restore a ${scope}`);
    if (target !== null && scope !== 'mailbox') throw refused(422, 'only a mailbox has a target');
    if (!item.points.some((point) => point.restoreAsOf === restoreAsOf)) throw refused(422, 'unknown snapshot');
    return jsonReply(202, { result: startJob(world, located.found, item, { type: action, restoreAsOf, target }).id });
  });

const listingJobs = (scope: Scope, path: string): AccountRoute =>
  accountAt('GET', `${base}/${path}/jobs`, (world, account, _call, values) => {
    const { found, item } = locate(world, account, values, scope);
    return jsonReply(200, found.jobs.filter(isOf(item)).map(viewJob));
  });

const pathOf: Readonly<Record<Scope, string>> = { web: 'web', database: 'database/:item', mailbox: 'mailbox/:item' };

export const timelineRoutes: readonly AccountRoute[] = [
  accountAt('GET', '/package/:id/web/timelineStorages', (world, account, _call, values) => {
    const { id, flags } = requirePackage(world, account, pathValue(values, 'id'));
    return jsonReply(200, flags.attached ? [{ id: `storage-${id}`, type: 'timeline', pro: flags.pro }] : []);
  }),
  accountAt('GET', base, (world, account, _call, values) =>
    jsonReply(200, viewTimeline(requirePackage(world, account, pathValue(values, 'id')))),
  ),
  ...(['web', 'database', 'mailbox'] as const).flatMap((scope) => [
    listingJobs(scope, pathOf[scope]),
    restoring(scope, pathOf[scope]),
  ]),
  ...(['web', 'database'] as const).map((scope) => taking(scope, pathOf[scope])),
];
