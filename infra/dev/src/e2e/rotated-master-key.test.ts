/**
 * The master key is rotated by the phases of docs/operating.md in a whole Drydock, with two of each API and of the gateway, while requests run.
 * A phase goes on when so many of them were answered, whatever time that takes.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { findFreePort } from '@drydock/process/free-port';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { isReady, Rolled } from './rolled';
import { Tenant } from './tenant';
import { writeVersion } from './versioned-site';

jest.setTimeout(1_800_000);

const apis = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
const stores = new Set(['postgres', 'sites-postgres', 'redis']);
const isStore = (name: string): boolean => stores.has(name) || name.endsWith('-stand-in');

let dataDir: string;
let stack: TestStack;
let twins: Map<string, Rolled>;
let gateways: Rolled[];
let keysDatabase: string;

const environmentOf = (name: string): Record<string, string> => {
  const lines = fs.readFileSync(`/proc/${stack.processes()[name]?.pid}/environ`, 'utf8').split('\0');
  return Object.fromEntries(lines.filter((line) => line !== '').map((line) => line.split(/=(.*)/s)));
};
const urlOf = (name: string): string => `http://127.0.0.1:${stack.processes()[name]?.port}`;

beforeAll(async () => {
  dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-rotated-'));
  stack = await startStack({ dataDir, environment: { DRYDOCK_DEMO: 'sites' } });
  keysDatabase = stack.variable('keys', 'DATABASE_URL');
  const twinOf = async (name: string): Promise<[string, Rolled]> => [
    name,
    new Rolled(`services/${name}/dist/server.js`, await findFreePort(), () => ({ ...environmentOf(name), DRAIN_SECONDS: '300' })),
  ];
  twins = new Map(await Promise.all(apis.map(twinOf)));
  await Promise.all([...twins.values()].map((each) => each.start()));
  const urls = apis.map((name) => [`${name.toUpperCase()}_URL`, `${urlOf(name)},${twins.get(name)?.url}`]);
  const ofGateway = () => ({ ...environmentOf('gateway'), ...Object.fromEntries(urls), DRAIN_SECONDS: '0' });
  const gateway = async () => new Rolled('services/gateway/dist/server.js', await findFreePort(), ofGateway);
  gateways = [await gateway(), await gateway()];
  await Promise.all(gateways.map((each) => each.start()));
});
afterAll(async () => {
  await Promise.all([...(gateways ?? []), ...(twins?.values() ?? [])].map((each) => each.end('SIGKILL')));
  await stack?.stop();
  fs.rmSync(dataDir, { recursive: true, force: true });
});

interface Asked {
  status: number;
  replayed: boolean;
  body: Record<string, unknown>;
}

/**
 * A balancer before two gateways: it sends requests only to a gateway that stays, so that the other one runs out of
 * them before it stops.
 */
class Front {
  private turn = 0;
  private leaving: Rolled | undefined;
  private readonly underWay = new Map<Rolled, number>();

  async ask(token: string, method: 'GET' | 'POST', route: string, body?: object, idempotencyKey?: string): Promise<Asked> {
    const staying = gateways.filter((each) => each !== this.leaving);
    this.turn += 1;
    const gateway = staying[this.turn % staying.length];
    if (gateway === undefined) throw new Error('one gateway stays');
    this.underWay.set(gateway, (this.underWay.get(gateway) ?? 0) + 1);
    try {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        connection: 'close',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      };
      const answer = await fetch(gateway.url + route, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
      const parsed: Record<string, unknown> = JSON.parse(await answer.text());
      return { status: answer.status, replayed: answer.headers.get('idempotent-replayed') === 'true', body: parsed };
    } finally {
      this.underWay.set(gateway, (this.underWay.get(gateway) ?? 1) - 1);
    }
  }

  async leave(gateway: Rolled): Promise<void> {
    this.leaving = gateway;
    await until(() => (this.underWay.get(gateway) ?? 0) === 0, { what: 'the last request at a gateway' });
  }

  comeBack(): void {
    this.leaving = undefined;
  }
}

const front = new Front();

/** Clients that ask again and again; what is not answered as it should be is kept. */
function startLoad(token: string) {
  const kinds = {
    'a look-up': () => front.ask(token, 'GET', '/v1/me'),
    'a list of sites': () => front.ask(token, 'GET', '/v1/sites?limit=1'),
    'a list of boards': () => front.ask(token, 'GET', '/v1/agency/boards'),
    'a list of servers': () => front.ask(token, 'GET', '/v1/compute/servers'),
    'a list of databases': () => front.ask(token, 'GET', '/v1/databases'),
    'a write': () => front.ask(token, 'POST', '/v1/api-keys', { name: 'under load', scopes: [] }, `load-${randomBytes(8).toString('hex')}`),
  };
  const answered = Object.keys(kinds).map(() => 0);
  const wrong: string[] = [];
  let ends = false;
  const clients = Object.entries(kinds).map(async ([kind, ask], at) => {
    while (!ends) {
      const outcome = await ask().then(
        ({ status, body }) => (status < 300 ? undefined : `${status} ${JSON.stringify(body)}`),
        (error: unknown) => `no answer: ${String(error)}`,
      );
      if (outcome !== undefined) wrong.push(`${kind}: ${outcome}`);
      answered[at] = (answered[at] ?? 0) + 1;
    }
  });
  return {
    more: async (requests = 3): Promise<void> => {
      const before = [...answered];
      const isEnough = () => answered.every((count, at) => count - (before[at] ?? 0) >= requests);
      await until(isEnough, { timeoutMs: 200_000, what: 'more requests of each kind' });
    },
    end: async (): Promise<string[]> => {
      ends = true;
      await Promise.all(clients);
      return wrong;
    },
  };
}
type Load = ReturnType<typeof startLoad>;

async function restartOfStack(name: string): Promise<void> {
  const before = stack.processes()[name]?.pid;
  stack.kill(name, 'SIGTERM');
  const isBack = async () => {
    const now = stack.processes()[name];
    return now !== undefined && now.pid !== before && (await isReady(`http://127.0.0.1:${now.port}`));
  };
  await until(isBack, { timeoutMs: 200_000, what: `${name} to be ready again` });
}

async function restart(each: Rolled): Promise<void> {
  await each.end('SIGTERM');
  await each.start();
  await until(() => isReady(each.url), { timeoutMs: 100_000, what: `${each.url} to be ready` });
}

/** One phase: every process that is given a secret is restarted in turn, none before the one before it is ready. */
async function carryOut(masterKeys: string, load: Load, without: readonly string[] = []): Promise<void> {
  fs.writeFileSync(path.join(dataDir, 'master.key'), masterKeys);
  for (const name of Object.keys(stack.processes()).filter((each) => !isStore(each) && !without.includes(each))) {
    await restartOfStack(name);
    await load.more();
    const twin = twins.get(name);
    if (twin === undefined) continue;
    await restart(twin);
    await load.more();
  }
  for (const gateway of gateways) {
    await front.leave(gateway);
    await restart(gateway);
    front.comeBack();
    await load.more();
  }
}

const restoreAndLook = async (tenant: Tenant, backupId: string): Promise<[string, string]> => {
  const [site] = stack.demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  await writeVersion(site, 'overwritten');
  const accepted = await tenant.must('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId });
  const { status } = await tenant.follow(accepted.location);
  return [status, await (await fetch(new URL('version.html', site.url))).text()];
};

test('the master key is rotated in three phases and no request fails; replays, pages and older backups stay good', async () => {
  const token = stack.demo.live_key;
  const [site] = stack.demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  // The supervisor's own gateway is one process: what is asked of it here is asked between the phases.
  const tenant = new Tenant(stack, token);
  const old = fs.readFileSync(path.join(dataDir, 'master.key'), 'utf8').trim();
  const next = randomBytes(32).toString('hex');
  fs.writeFileSync(path.join(dataDir, 'stores-master.key'), old);

  const mint = (name: string) => front.ask(token, 'POST', '/v1/api-keys', { name, scopes: ['sites.view'] }, `before-rotation-${name}`);
  const minted = z.looseObject({ id: z.string(), token: z.string() });
  const [used, idle] = [minted.parse((await mint('used')).body), minted.parse((await mint('idle')).body)];
  const page = await front.ask(token, 'GET', '/v1/api-keys?limit=1');
  const { next_cursor: cursor } = z.looseObject({ page: z.looseObject({ next_cursor: z.string() }) }).parse(page.body).page;
  await writeVersion(site, 'old');
  const { id: oldBackup } = await tenant.takeBackup(site.id);
  const held = async () => {
    const replay = await mint('used');
    const goesOn = await front.ask(token, 'GET', `/v1/api-keys?limit=1&cursor=${encodeURIComponent(cursor)}`);
    return [replay.replayed, replay.body['token'] === used.token, goesOn.status, (await front.ask(used.token, 'GET', '/v1/me')).status];
  };
  const everythingHolds = [true, true, 200, 200];

  const load = startLoad(token);
  await load.more();
  await carryOut(`${old},${next}`, load);
  expect(await held()).toEqual(everythingHolds);
  expect(await restoreAndLook(tenant, oldBackup)).toEqual(['succeeded', 'old/old']);

  await carryOut(`${next},${old}`, load);
  expect(await held()).toEqual(everythingHolds);
  expect(await restoreAndLook(tenant, oldBackup)).toEqual(['succeeded', 'old/old']);
  await writeVersion(site, 'new');
  const { id: newBackup } = await tenant.takeBackup(site.id);
  expect(await restoreAndLook(tenant, newBackup)).toEqual(['succeeded', 'new/new']);
  const [now] = await runSql<{ at: Date }>(keysDatabase, 'SELECT now() AS at');
  const usedSince = async () => {
    await front.ask(used.token, 'GET', '/v1/me');
    const [row] = await runSql<{ since: boolean }>(keysDatabase, 'SELECT last_used_at >= $2 AS since FROM api_keys WHERE id = $1', [
      used.id,
      now?.at,
    ]);
    return row?.since;
  };
  await until(usedSince, { timeoutMs: 200_000, what: 'the use of a key in phase 2 to be noted' });

  // The archive key stays: its holders keep what they were given in phase 2.
  await carryOut(next, load, ['hosting-worker', 'databases-worker']);
  expect((await front.ask(used.token, 'GET', '/v1/me')).status).toBe(200);
  expect((await front.ask(idle.token, 'GET', '/v1/me')).status).toBe(401);
  const [unused] = await runSql<{ named: boolean }>(
    keysDatabase,
    'SELECT revoked_at IS NULL AND created_at < $2 AND coalesce(last_used_at, created_at) < $2 AS named FROM api_keys WHERE id = $1',
    [idle.id, now?.at],
  );
  expect(unused).toEqual({ named: true });
  for (const backup of [oldBackup, newBackup])
    expect(await restoreAndLook(tenant, backup)).toEqual(['succeeded', backup === oldBackup ? 'old/old' : 'new/new']);
  expect(await load.end()).toEqual([]);
});
