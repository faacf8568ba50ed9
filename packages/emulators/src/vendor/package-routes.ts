import { z } from 'zod';
import { type Call, jsonReply, Refusal } from '../protocol/call';
import { pathValue } from '../protocol/routes';
import { isRunning, newItem, type Package } from './vendor-state';
import { type AccountRoute, accountAt, type VendorWorld } from './vendor-world';

/** Returns a refusal of the vendor: a status and a sentence for people. */
export const refused = (status: 401 | 404 | 409 | 422, message: string): Refusal =>
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
export function parseBody<T>(schema: z.ZodType<T>, call: Call): T {
  try {
    return schema.parse(JSON.parse(call.body.toString('utf8') || '{}'));
  } catch {
    throw refused(422, 'the request is malformed');
  }
}

/** Finds a package. A package of another account gets the same answer as a missing one. @throws Refusal 404 */
export function requirePackage({ state }: VendorWorld, account: string, id: string): Package {
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
  // The address serves the site before its domain points to it.
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
