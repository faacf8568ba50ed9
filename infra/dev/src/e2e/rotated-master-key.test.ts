/**
 * Rotates the master key in the phases and with the commands of docs/operating.md, while requests and restores run.
 * The requests go to two gateways and to two processes of each API. A phase continues after a fixed number of answers,
 * so that the speed of the machine does not matter.
 *
 * @tier long
 * @processes
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { verifyWebhook } from '@drydock/client';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { findFreePort } from '@drydock/process';
import { missingTools } from '@drydock/process/testing/needs';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { Redis } from 'ioredis';
import pg from 'pg';
import { z } from 'zod';
import { inRepo } from '../dev-config';
import { isReady, Rolled } from './rolled';
import { Tenant } from './tenant';
import { writeVersion } from './versioned-site';

jest.setTimeout(1_800_000);

const lacking = missingTools('redis');
const itWithRedis = lacking === '' ? test : test.skip;
const apis = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
const stores = new Set(['postgres', 'sites-postgres', 'redis']);
const isStore = (name: string): boolean => stores.has(name) || name.endsWith('-stand-in');

let dataDir: string;
let stack: TestStack;
let twins: Map<string, Rolled>;
let gateways: Rolled[];
let receiver: Receiver;

const environmentOf = (name: string): Record<string, string> => {
  const lines = fs.readFileSync(`/proc/${stack.processes()[name]?.pid}/environ`, 'utf8').split('\0');
  return Object.fromEntries(lines.filter((line) => line !== '').map((line) => line.split(/=(.*)/s)));
};
/** Returns the URL of the database of keys, with the login of the present phase. */
const keysDatabase = (): string => stack.variable('keys', 'DATABASE_URL');
const urlOf = (name: string): string => `http://127.0.0.1:${stack.processes()[name]?.port}`;

beforeAll(async () => {
  dataDir = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-rotated-'));
  if (lacking !== '') return;
  receiver = await startReceiver();
  stack = await startStack({
    dataDir,
    queueBackend: 'redis',
    environment: { DRYDOCK_DEMO: 'sites', DRYDOCK_WEBHOOK_ALLOW: receiver.authority },
  });
  const twinOf = async (name: string): Promise<[string, Rolled]> => [
    name,
    new Rolled(`services/${name}/dist/server.js`, await findFreePort(), () => ({
      ...environmentOf(name),
      DRAIN_SECONDS: '300',
    })),
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
  receiver?.close();
  fs.rmSync(dataDir, { recursive: true, force: true });
});

/**
 * Starts a receiver of webhooks, as a customer has it. It accepts messages that are signed with a secret in `secrets`,
 * and refuses all others.
 */
async function startReceiver() {
  const secrets: string[] = [];
  const taken: string[] = [];
  const refused: string[] = [];
  const take = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks).toString();
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const isSigned = await Promise.any(secrets.map((secret) => verifyWebhook(secret, { body, headers }))).then(
      () => true,
      () => false,
    );
    (isSigned ? taken : refused).push(body);
    response.writeHead(isSigned ? 204 : 401).end();
  };
  const server = http.createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    authority: `127.0.0.1:${port}`,
    /** The accepted secrets. The test adds and removes secrets, as the customer would. */
    secrets,
    refused,
    more: (): Promise<unknown> => {
      const before = taken.length;
      return until(() => taken.length > before, { timeoutMs: 200_000, what: 'another event at the receiver' });
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
type Receiver = Awaited<ReturnType<typeof startReceiver>>;

interface Asked {
  status: number;
  replayed: boolean;
  body: Record<string, unknown>;
  location: string;
}

/**
 * A load balancer in front of two gateways. It sends no new request to a gateway that is about to stop. So the gateway
 * has no request left when it stops.
 */
class Front {
  private turn = 0;
  private leaving: Rolled | undefined;
  private readonly underWay = new Map<Rolled, number>();

  async ask(
    token: string,
    method: 'GET' | 'POST' | 'PUT',
    route: string,
    body?: object,
    idempotencyKey?: string,
  ): Promise<Asked> {
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
      const answer = await fetch(gateway.url + route, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
      });
      const parsed: Record<string, unknown> = JSON.parse(await answer.text());
      const replayed = answer.headers.get('idempotent-replayed') === 'true';
      return { status: answer.status, replayed, body: parsed, location: answer.headers.get('location') ?? '' };
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

const endSchema = z.looseObject({ status: z.string() });

/** Polls the workflow at this Location. Resolves with its final status. */
const follow = (token: string, location: string): Promise<string> =>
  until(
    async () => {
      const { status } = endSchema.parse((await front.ask(token, 'GET', location)).body);
      return !['queued', 'running'].includes(status) && status;
    },
    { timeoutMs: 400_000, everyMs: 100, what: `the end of ${location}` },
  );

interface Restored {
  site: string;
  backup: string;
}

/**
 * Starts a client for each kind of request, and a client that restores a site. Each client repeats its call without a
 * pause. `end` resolves with the wrong answers.
 */
function startLoad(token: string, { site, backup }: Restored) {
  const kinds = {
    'a look-up': () => front.ask(token, 'GET', '/v1/me'),
    'a list of sites': () => front.ask(token, 'GET', '/v1/sites?limit=1'),
    'a list of boards': () => front.ask(token, 'GET', '/v1/agency/boards'),
    'a list of servers': () => front.ask(token, 'GET', '/v1/compute/servers'),
    'a list of databases': () => front.ask(token, 'GET', '/v1/databases'),
    'a write': () =>
      front.ask(
        token,
        'POST',
        '/v1/api-keys',
        { name: 'under load', scopes: [] },
        `load-${randomBytes(8).toString('hex')}`,
      ),
  };
  const answered = Object.keys(kinds).map(() => 0);
  const wrong: string[] = [];
  let ends = false;
  let restores = 0;
  const restoreOnce = async (): Promise<string | undefined> => {
    const key = `restore-${randomBytes(8).toString('hex')}`;
    const accepted = await front.ask(token, 'POST', `/v1/sites/${site}/backups/restore`, { backup_id: backup }, key);
    if (accepted.status !== 202) return `${accepted.status} ${JSON.stringify(accepted.body)}`;
    const end = await follow(token, accepted.location);
    return end === 'succeeded' ? undefined : `${accepted.location} ${end}`;
  };
  const restoring = (async () => {
    while (!ends) {
      const outcome = await restoreOnce().catch((error: unknown) => `no end: ${String(error)}`);
      if (outcome !== undefined) wrong.push(`a restore: ${outcome}`);
      restores += 1;
    }
  })();
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
    moreRestores: (): Promise<unknown> => {
      const before = restores;
      return until(() => restores - before >= 2, { timeoutMs: 400_000, what: 'two more restores' });
    },
    end: async (): Promise<string[]> => {
      ends = true;
      await Promise.all([...clients, restoring]);
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

/** Returns the commands of step 1 exactly as in docs/operating.md. */
function stepOne(): string {
  const page = fs.readFileSync(inRepo('docs/operating.md'), 'utf8');
  const [, block] = /^## Rotating the master key\n[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(page) ?? [];
  if (block === undefined) throw new Error('docs/operating.md does not say how the master key is rotated');
  return block;
}

/**
 * Runs the commands of step 1 as an operator does. The secrets are written to a folder of their own. ADMIN_DATABASE_URL
 * has the password that this stack's Postgres has generated, because `npm start` does not derive this password.
 */
async function tellStores(masterKeys: string): Promise<void> {
  const [postgres, redis] = ['postgres', 'redis'].map((name) => stack.processes()[name]?.port);
  const superuser = fs.readFileSync(path.join(dataDir, 'postgres/password'), 'utf8').trim();
  const env = {
    PATH: process.env['PATH'],
    DRYDOCK_MASTER_KEY: masterKeys,
    SECRETS: path.join(dataDir, 'secrets'),
    POSTGRES_ADDRESS: `127.0.0.1:${postgres}`,
    ADMIN_DATABASE_URL: `postgresql://postgres:${superuser}@127.0.0.1:${postgres}/postgres`,
    REDIS_ADDRESS: `127.0.0.1:${redis}`,
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redis),
  };
  const { stdout } = await promisify(execFile)('bash', ['-e', '-o', 'pipefail', '-c', stepOne()], {
    cwd: inRepo('.'),
    env,
  });
  expect(stdout).toMatch(/^Written to .*\n\{"keys":\["keys_[0-9a-f]{8}".*\}\nOK\n$/);
}

/**
 * Runs one phase: gives Postgres and Redis the new passwords, and then restarts every process except Postgres, Redis,
 * the emulators and the processes in `without`. A restart begins when the previous process is ready again.
 */
async function carryOut(masterKeys: string, load: Load, without: readonly string[] = []): Promise<void> {
  await tellStores(masterKeys);
  await load.more();
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
  await load.moreRestores();
}

async function isLetInByRedis(url: string): Promise<boolean> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    return (await redis.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

/** Tells for each URL whether Postgres or Redis accepts its login. */
async function areLetIn(urls: readonly string[]): Promise<boolean[]> {
  const isLetIn = async (url: string): Promise<boolean> => {
    if (url.startsWith('redis')) return isLetInByRedis(url);
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      return true;
    } catch (error) {
      expect(String(error)).toContain('password authentication failed');
      return false;
    } finally {
      await client.end();
    }
  };
  return Promise.all(urls.map(isLetIn));
}
const storeUrls = (): string[] => [
  ...apis.map((name) => stack.variable(name, 'DATABASE_URL')),
  stack.variable('hosting', 'QUEUE_URL'),
];

/** Creates a managed database. `opens` logs in with the password that the API has shown once. */
async function orderDatabase(token: string) {
  const key = 'before-rotation-database';
  const body = { label: 'rotated', engine: 'postgres', engine_version: '17', size: 'small' };
  const shownSchema = z.looseObject({ id: z.string(), password: z.string() });
  const order = () => front.ask(token, 'POST', '/v1/databases', body, key);
  const shown = shownSchema.parse((await order()).body);
  const stateSchema = z.looseObject({
    status: z.string(),
    host: z.string(),
    port: z.int(),
    database_name: z.string(),
    username: z.string(),
  });
  const available = () =>
    until(
      async () => {
        const state = stateSchema.parse((await front.ask(token, 'GET', `/v1/databases/${shown.id}`)).body);
        return state.status === 'available' && state;
      },
      { timeoutMs: 400_000, what: 'the managed database' },
    );
  await available();
  return {
    /** Tells whether the same request with the same idempotency key shows the same password again. */
    isShownAgain: async (): Promise<boolean> => {
      const { replayed, body: again } = await order();
      return replayed && again['password'] === shown.password;
    },
    opens: async (): Promise<boolean> => {
      const { host, port, username: user, database_name: database } = await available();
      const client = new pg.Client({
        host,
        port,
        user,
        password: shown.password,
        database,
        ssl: { rejectUnauthorized: false },
      });
      await client.connect();
      await client.query('SELECT 1');
      await client.end();
      return true;
    },
    backUp: async (): Promise<string> => {
      const { location } = await front.ask(token, 'POST', `/v1/databases/${shown.id}/backups`, {});
      return follow(token, location);
    },
  };
}

/** Configures copies of a site in its owner's bucket. Drydock stores the credentials encrypted by a derived secret. */
async function configureStorage(token: string, siteId: string) {
  const accountsSchema = z.array(
    z.looseObject({ accessKeyId: z.string(), secretAccessKey: z.string(), buckets: z.array(z.string()) }),
  );
  const accounts = accountsSchema.parse(JSON.parse(stack.variable('s3-stand-in', 'ACCOUNTS')));
  const account = accounts.find(({ accessKeyId }) => accessKeyId === 'demo-customer');
  const offsite = `/v1/sites/${siteId}/offsite`;
  const configured = await front.ask(token, 'PUT', offsite, {
    endpoint: urlOf('s3-stand-in'),
    region: 'us-east-1',
    bucket: account?.buckets[0],
    prefix: 'rotated',
    access_key_id: account?.accessKeyId,
    secret_access_key: account?.secretAccessKey,
  });
  expect(configured.status).toBeLessThan(300);
  const copiesSchema = z.looseObject({ copies: z.array(z.looseObject({ id: z.string() })) });
  const carryOutCopy = async (route: string, body: object): Promise<string> => {
    const accepted = await front.ask(token, 'POST', `${offsite}/${route}`, body);
    return accepted.status === 202
      ? follow(token, accepted.location)
      : `${accepted.status} ${JSON.stringify(accepted.body)}`;
  };
  return {
    copy: (kind: 'full' | 'incremental') => carryOutCopy('copies', { kind }),
    copies: async (): Promise<string[]> =>
      copiesSchema.parse((await front.ask(token, 'GET', offsite)).body).copies.map(({ id }) => id),
    restore: (copyId: string) => carryOutCopy('restore', { copy_id: copyId }),
  };
}

const restoreAndLook = async (tenant: Tenant, backupId: string): Promise<[string, string]> => {
  const [site] = stack.demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  await writeVersion(site, 'overwritten');
  const accepted = await tenant.must('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId });
  const { status } = await tenant.follow(accepted.location);
  return [status, await (await fetch(new URL('version.html', site.url))).text()];
};

itWithRedis(
  `the master key is rotated in three phases and no request and no restore fails; what is sealed or was shown stays good${lacking}`,
  async () => {
    const token = stack.demo.live_key;
    const [site] = stack.demo.sites;
    if (site === undefined) throw new Error('the demo has no site');
    // The tenant calls the only gateway of the supervisor, which does not answer during its restart. So the tenant
    // calls only between the phases.
    const tenant = new Tenant(stack, token);
    const old = fs.readFileSync(path.join(dataDir, 'master.key'), 'utf8').trim();
    const next = randomBytes(32).toString('hex');
    fs.writeFileSync(path.join(dataDir, 'emulators-master.key'), old);

    const mint = (name: string) =>
      front.ask(token, 'POST', '/v1/api-keys', { name, scopes: ['sites.view'] }, `before-rotation-${name}`);
    const minted = z.looseObject({ id: z.string(), token: z.string() });
    const [used, idle] = [minted.parse((await mint('used')).body), minted.parse((await mint('idle')).body)];
    const page = await front.ask(token, 'GET', '/v1/api-keys?limit=1');
    const { next_cursor: cursor } = z
      .looseObject({ page: z.looseObject({ next_cursor: z.string() }) })
      .parse(page.body).page;
    await writeVersion(site, 'old');
    const { id: oldBackup } = await tenant.takeBackup(site.id);
    const database = await orderDatabase(token);
    const storage = await configureStorage(token, site.id);
    expect(await storage.copy('full')).toBe('succeeded');
    const [oldCopy = ''] = await storage.copies();
    const webhook = await front.ask(token, 'POST', '/v1/webhooks', {
      url: `http://${receiver.authority}/`,
      event_types: ['*'],
    });
    const webhookSchema = z.looseObject({ id: z.string(), secret: z.string() });
    const { id: webhookId, secret: webhookSecret } = webhookSchema.parse(webhook.body);
    receiver.secrets.push(webhookSecret);
    /** Tries everything that must work in all phases. */
    const stays = async () => ({
      usedKey: (await front.ask(used.token, 'GET', '/v1/me')).status,
      databaseOpens: await database.opens(),
      databaseBackup: await database.backUp(),
      copy: await storage.copy('incremental'),
    });
    const everythingStays = { usedKey: 200, databaseOpens: true, databaseBackup: 'succeeded', copy: 'succeeded' };
    /** Tries everything that works while the old master key is accepted. */
    const held = async () => {
      const replay = await mint('used');
      const goesOn = await front.ask(token, 'GET', `/v1/api-keys?limit=1&cursor=${encodeURIComponent(cursor)}`);
      return {
        replayed: replay.replayed && replay.body['token'] === used.token && (await database.isShownAgain()),
        nextPage: goesOn.status,
        ...(await stays()),
      };
    };
    const everythingHolds = { replayed: true, nextPage: 200, ...everythingStays };

    const restored = await tenant.makeSite('rotated.example.com');
    const load = startLoad(token, { site: restored.id, backup: (await tenant.takeBackup(restored.id)).id });
    await load.more();
    const oldUrls = storeUrls();
    await carryOut(`${old},${next}`, load);
    expect(storeUrls()).toEqual(oldUrls);
    expect(await held()).toEqual(everythingHolds);
    await receiver.more();
    expect(await restoreAndLook(tenant, oldBackup)).toEqual(['succeeded', 'old/old']);

    await carryOut(`${next},${old}`, load);
    const newUrls = storeUrls();
    expect(newUrls.filter((url) => oldUrls.includes(url))).toEqual([]);
    expect(await areLetIn([...oldUrls, ...newUrls])).toEqual([...oldUrls, ...newUrls].map(() => true));
    expect(await held()).toEqual(everythingHolds);
    await receiver.more();
    // Customers must change the secret of a webhook before the old master key is removed, as docs/operating.md says.
    const changed = await front.ask(token, 'POST', `/v1/webhooks/${webhookId}/rotate-secret`, {});
    receiver.secrets.push(webhookSchema.parse(changed.body).secret);
    await receiver.more();
    expect(await restoreAndLook(tenant, oldBackup)).toEqual(['succeeded', 'old/old']);
    await writeVersion(site, 'new');
    const { id: newBackup } = await tenant.takeBackup(site.id);
    expect(await restoreAndLook(tenant, newBackup)).toEqual(['succeeded', 'new/new']);
    const [now] = await runSql<{ at: Date }>(keysDatabase(), 'SELECT now() AS at');
    const usedSince = async () => {
      await front.ask(used.token, 'GET', '/v1/me');
      const [row] = await runSql<{ since: boolean }>(
        keysDatabase(),
        'SELECT last_used_at >= $2 AS since FROM api_keys WHERE id = $1',
        [used.id, now?.at],
      );
      return row?.since;
    };
    await until(usedSince, { timeoutMs: 200_000, what: 'the use of a key in phase 2 to be noted' });

    receiver.secrets.shift();
    // The workers with an ARCHIVE_KEY keep both archive keys, so that older backups stay readable. They are not
    // restarted in this phase.
    await carryOut(next, load, ['hosting-worker', 'databases-worker']);
    expect(await areLetIn([...oldUrls, ...newUrls])).toEqual([...oldUrls.map(() => false), ...newUrls.map(() => true)]);
    expect(await stays()).toEqual(everythingStays);
    await receiver.more();
    expect((await front.ask(idle.token, 'GET', '/v1/me')).status).toBe(401);
    const sentAgain = await mint('used');
    expect([sentAgain.status, sentAgain.body['code']]).toEqual([422, 'idempotency_key_reused']);
    const [unused] = await runSql<{ named: boolean }>(
      keysDatabase(),
      'SELECT revoked_at IS NULL AND created_at < $2 AND coalesce(last_used_at, created_at) < $2 AS named FROM api_keys WHERE id = $1',
      [idle.id, now?.at],
    );
    expect(unused).toEqual({ named: true });
    for (const backup of [oldBackup, newBackup])
      expect(await restoreAndLook(tenant, backup)).toEqual(['succeeded', backup === oldBackup ? 'old/old' : 'new/new']);
    expect(await storage.restore(oldCopy)).toBe('succeeded');
    expect(await (await fetch(new URL('version.html', site.url))).text()).toBe('old/old');
    expect(await load.end()).toEqual([]);
    expect(receiver.refused).toEqual([]);
  },
);
