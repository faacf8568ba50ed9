import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { readDemo, writePartial } from './demo-file';
import { type DemoContext, seedDemo } from './seed-demo';

const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-seed-'));
let gateway: Server;
let baseUrl: string;
/** The status that a site gets when it is created, and all created sites by idempotency key. */
let becomes = 'failed';
const sites = new Map<string, { status: string; created_at: string }>();

beforeAll(async () => {
  gateway = createServer((request, response) => {
    const key = String(request.headers['idempotency-key']);
    const url = request.url ?? '';
    if (request.method === 'POST' && !sites.has(key))
      sites.set(key, { status: becomes, created_at: new Date().toISOString() });
    const id = request.method === 'POST' ? key : (url.split('/')[3] ?? '');
    const site = { ...sites.get(id), id, name: id };
    const work = { data: [{ error: { title: 'Failed', detail: 'SQL: no answer' } }] };
    request.resume().on('end', () => response.end(JSON.stringify(url.endsWith('/workflows') ? work : site)));
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
  const keys = { org_id: 'o', child_org_id: 'c', live_key: 'l', sandbox_key: 's', staff_key: 't', other_org_key: 'x' };
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
  // In this test `describeSite` throws an error with the id of the site, which is its idempotency key. The key is new,
  // so a new site was created.
  expect(unfinished).toEqual([
    expect.objectContaining({ problem: expect.stringMatching(/^demo-site-.*-again-2 serves$/) }),
  ]);
  expect(readDemo(folder).live_key).toBe('l');
});
