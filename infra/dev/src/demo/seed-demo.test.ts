import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { readDemo, writePartial } from './demo-file';
import { type DemoContext, seedDemo } from './seed-demo';
import { sitesSeed } from './seed-sites';
import { demoSites } from './site-content';

const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-seed-'));
let gateway: Server;
let baseUrl: string;
/** The status that a new site gets. `sites` has all created sites by idempotency key. */
let becomes = 'failed';
const sites = new Map<string, { status: string; created_at: string }>();
/** The domains of sites that exist, although the gateway has forgotten the idempotency keys of their creation. */
let forgotten: readonly string[] = [];

const answerOf = (request: IncomingMessage, body: string): [status: number, body: unknown] => {
  const { method, url = '' } = request;
  const key = String(request.headers['idempotency-key']);
  if (url.endsWith('/workflows')) return [200, { data: [{ error: { title: 'Failed', detail: 'SQL: no answer' } }] }];
  if (url.startsWith('/v1/sites?')) {
    const asked = new URLSearchParams(url.slice(url.indexOf('?'))).get('text');
    const found = forgotten
      .flatMap((domain) => [`other.${domain}`, domain])
      .filter((name) => name.includes(asked ?? ''));
    return [200, { data: found.map((domain) => ({ id: `old-${domain}`, primary_domain: domain })) }];
  }
  if (url.startsWith('/v1/sites/old-'))
    return [200, { id: url.split('/')[3], status: 'active', created_at: new Date(0).toISOString() }];
  if (method === 'POST' && forgotten.includes(JSON.parse(body).primary_domain))
    return [422, { type: '/problems/domain_in_use', code: 'domain_in_use' }];
  if (method === 'POST' && !sites.has(key)) sites.set(key, { status: becomes, created_at: new Date().toISOString() });
  const id = method === 'POST' ? key : (url.split('/')[3] ?? '');
  return [200, { ...sites.get(id), id, name: id }];
};

beforeAll(async () => {
  gateway = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const [status, body] = answerOf(request, text);
      response.writeHead(status).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  const address = gateway.address();
  baseUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  gateway.closeAllConnections();
  await new Promise((resolve) => gateway.close(resolve));
});

const keys = { org_id: 'o', child_org_id: 'c', live_key: 'l', sandbox_key: 's', staff_key: 't', other_org_key: 'x' };
const unused = (): never => {
  throw new Error('it is not part of this demo');
};
const told: string[] = [];
const seed = () =>
  seedDemo({
    dataDir: folder,
    baseUrl,
    processesFile: 'processes.json',
    extent: 'sites',
    say: (line) => told.push(line),
    bootstrap: unused,
    hostingCommand: unused,
    describeSite: async (id) => {
      throw new Error(`${id} serves`);
    },
  } satisfies Partial<DemoContext> as unknown as DemoContext);

test('a site that fails is told with its problem, ends nothing, and the next start makes it anew', async () => {
  writePartial(folder, keys);
  const [first, again] = [await seed(), await seed()];
  expect([first.sites, first.unfinished]).toEqual([
    [],
    [expect.objectContaining({ problem: expect.stringContaining('SQL: no answer') })],
  ]);
  expect(again.unfinished).toHaveLength(1);
  expect(told.join('\n')).toContain('could not be created: SQL: no answer');
  becomes = 'active';
  const { unfinished } = await seed();
  // In this file `describeSite` throws an error with the id of the site, and the gateway uses the idempotency key as
  // the id. The key is new, so a new site was created.
  expect(unfinished).toEqual([
    expect.objectContaining({ problem: expect.stringMatching(/^demo-site-.*-again-2 serves$/) }),
  ]);
  expect(readDemo(folder).live_key).toBe('l');
});

test('a start finds the sites of an interrupted one when their keys are forgotten, and keeps the sites that are told', async () => {
  const told = { id: 'told', url: 'http://told.test', files_dir: 'told', database_url: 'postgres://told' };
  const [first, second] = demoSites.map(({ domain }) => domain);
  writePartial(folder, { ...keys, sites: [told], unfinished: [{ title: sitesSeed.title, problem: 'interrupted' }] });
  forgotten = [first ?? '', second ?? ''];
  const { unfinished, sites: kept } = await seed();
  // `describeSite` throws the id of the site that was found.
  expect(unfinished).toEqual([expect.objectContaining({ problem: `old-${first} serves` })]);
  expect(kept).toEqual([told]);
});
