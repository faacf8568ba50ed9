/**
 * Causes the failure of each page of docs/runbooks in a whole stack, and runs the page's commands unchanged.
 *
 * @tier long
 * @processes
 */
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { findFreePort } from '@drydock/process';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { queueBackends } from '@drydock/testing/scope';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { Client } from 'pg';
import { z } from 'zod';
import { inRepo } from '../dev-config';
import { Customer } from './customer';
import { sql, Tenant, type TenantSite } from './tenant';

const pages = inRepo('docs/runbooks');
/** Matches a command. Pages also have names in backticks, which begin with none of these words. */
const isCommand =
  /^(?:SELECT|UPDATE|SET|GET|POST|sum by|max by|node|npm|drydock|redis-cli|vmstat|kill|ls|lsattr|chattr|findmnt|find|rm|kubectl|docker) /;
/**
 * Matches the commands that this suite does not run. kubectl and docker need a cluster or a Docker engine. `npm start`
 * would start a second stack. A request `POST …` is abbreviated, so it cannot be sent.
 */
const isElsewhere = /^(?:kubectl |docker |npm start$|POST …)/;

/** A page of docs/runbooks. It records which of its commands the tests have used. */
class Page {
  private readonly name: string;
  private readonly texts: readonly string[];
  private readonly asked = new Set<string>();

  constructor(name: string) {
    this.name = name;
    const text = readFileSync(path.join(pages, `${name}.md`), 'utf8');
    this.texts = [...text.matchAll(/`([^`]+)`/g)].map(([, inside = '']) => inside.replace(/\s+/g, ' '));
  }

  /**
   * Returns the text in backticks that begins with `start`, with the words of `fills` replaced by their values. @throws
   * if the page has no such text
   */
  says(start: string, fills: Readonly<Record<string, string>> = {}): string {
    const found = this.texts.find((text) => text.startsWith(start));
    if (found === undefined) throw new Error(`docs/runbooks/${this.name}.md does not say \`${start}…\``);
    this.asked.add(found);
    return Object.entries(fills).reduce((text, [word, value]) => text.replaceAll(word, value), found);
  }

  notAsked(): string[] {
    const commands = new Set(this.texts.filter((text) => isCommand.test(text) && !isElsewhere.test(text)));
    return [...commands].filter((text) => !this.asked.has(text)).map((text) => `${this.name}: ${text}`);
  }
}

const runbooks = new Map(readdirSync(pages).map((file) => [path.parse(file).name, new Page(path.parse(file).name)]));
const pageOf = (name: string): Page => {
  const page = runbooks.get(name);
  if (page === undefined) throw new Error(`there is no docs/runbooks/${name}.md`);
  return page;
};

const run = promisify(execFile);
const shell = async (command: string, environment: Readonly<Record<string, string>> = {}): Promise<string> =>
  (await run('bash', ['-c', command], { cwd: inRepo('.'), env: { ...process.env, ...environment } })).stdout;

/** A real Prometheus, which scrapes a stack every second. */
class Prometheus {
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'drydock-prometheus-'));
  private readonly child: ReturnType<typeof spawn>;
  private readonly url: string;

  constructor(targets: string, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    const config = path.join(this.folder, 'prometheus.yml');
    const scrapes = [{ job_name: 'drydock', file_sd_configs: [{ files: [targets] }] }];
    writeFileSync(
      config,
      JSON.stringify({ global: { scrape_interval: '1s', scrape_timeout: '1s' }, scrape_configs: scrapes }),
    );
    const paths = [`--config.file=${config}`, `--storage.tsdb.path=${this.folder}/data`];
    this.child = spawn('prometheus', [...paths, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  }

  /** Runs an instant query. Resolves with the labels and the value of each series. */
  async ask(query: string): Promise<{ labels: Record<string, string>; value: number }[]> {
    const response = await fetch(`${this.url}/api/v1/query?${new URLSearchParams({ query }).toString()}`);
    const series = z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) });
    const { data } = z.object({ data: z.object({ result: z.array(series) }) }).parse(await response.json());
    return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  async stop(): Promise<void> {
    const gone = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await gone;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

jest.setTimeout(900_000);
const itWithPrometheus = spawnSync('prometheus', ['--version']).status === 0 ? test : test.skip;
const itWithRedis = queueBackends().includes('redis') ? test : test.skip;
const asRoot = process.getuid?.() === 0 ? test : test.skip;

const faults = createFaultTokens();
let stack: TestStack;
let customer: Customer;
let tenant: Tenant;
let prometheus: Prometheus | null = null;
let site: TenantSite;
let backupId: string;

beforeAll(async () => {
  const port = await findFreePort();
  stack = await startStack({
    queueBackend: queueBackends()[0] ?? 'postgres',
    faultsDir: faults.folder,
    // Tests usually have longer time-outs than production. Here processes are frozen and never answer, so longer
    // time-outs would only cost time.
    environment: {
      DRYDOCK_DEMO: 'sites',
      DRYDOCK_TIMEOUT_SCALE: '1',
      OTEL_EXPORTER_PROMETHEUS_PORT: String(await metricsPorts()),
    },
  });
  if (itWithPrometheus === test) prometheus = new Prometheus(path.join(stack.dataDir, 'prometheus-targets.json'), port);
  customer = new Customer(stack.demo.base_url, stack.demo.live_key);
  tenant = new Tenant(stack, stack.demo.live_key);
  site = await tenant.makeSite('runbooks.example.com');
  ({ id: backupId } = await tenant.takeBackup(site.id));
});
afterAll(async () => {
  await prometheus?.stop();
  await stack?.stop();
  faults.remove();
});

/**
 * Returns the first of the ports on which the processes serve their metrics. The ports lie above the range from which
 * the kernel gives ports to outgoing connections. The number of a free port serves as a random number.
 */
const metricsPorts = async (): Promise<number> => 61_100 + ((await findFreePort()) % 100) * 40;

const pidOf = (name: string): number => stack.processes()[name]?.pid ?? 0;
const addressOf = (name: string): string => `http://127.0.0.1:${stack.processes()[name]?.port}`;
const databaseOf = (service: string): string => stack.variable(service, 'DATABASE_URL');
const restore = async (): Promise<string> =>
  (await customer.insist('POST', `/v1/sites/${site.id}/backups/restore`, { backup_id: backupId })).headers.get(
    'location',
  ) ?? '';
/**
 * Sends a request of a page, such as `GET /readyz`, to a process. Resolves with null if the process does not answer.
 */
async function probe(name: string, line: string): Promise<{ status: number; text: string } | null> {
  const [method = '', at = ''] = line.split(' ');
  try {
    const response = await fetch(addressOf(name) + at, { method, signal: AbortSignal.timeout(5_000) });
    return { status: response.status, text: await response.text() };
  } catch {
    return null;
  }
}
async function whileFrozen(name: string, work: () => Promise<void>): Promise<void> {
  const pid = pidOf(name);
  process.kill(pid, 'SIGSTOP');
  try {
    await work();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}
const seriesOf = (query: string, isMeant: (series: { labels: Record<string, string>; value: number }) => boolean) =>
  until(async () => ((await prometheus?.ask(query)) ?? []).find(isMeant), {
    timeoutMs: 120_000,
    everyMs: 500,
    what: query,
  });

test('process_down: a process that does not answer is told from one that lacks something, and its log says why', async () => {
  const page = pageOf('process_down');
  await whileFrozen('agency', async () => {
    expect(await probe('agency', page.says('GET /healthz'))).toBeNull();
    expect(await probe('keys', 'GET /healthz')).toMatchObject({ status: 200 });
    // Only operations of the frozen service answer 503.
    expect((await customer.call('GET', '/v1/agency/boards')).status).toBe(503);
    expect((await customer.call('GET', '/v1/sites')).status).toBe(200);
    expect((await probe('gateway', `GET ${page.says('/readyz')}`))?.status).toBe(200);
  });
  await stack.killAndWait('agency');
  await until(async () => (await probe('agency', 'GET /readyz'))?.status === 200, {
    timeoutMs: 120_000,
    what: 'agency',
  });
  expect(stack.log('agency')).toContain('listening');
});

itWithPrometheus('requests_fail: the query names the route and the status of what fails', async () => {
  const query = pageOf('requests_fail').says('sum by (http_route');
  await whileFrozen('agency', async () => {
    await until(
      async () => {
        const answer = await customer.call('GET', '/v1/agency/boards');
        expect(answer).toMatchObject({ status: 503, body: { code: 'dependency_unavailable', dependency: 'agency' } });
        return (await prometheus?.ask(query))?.some(
          ({ labels, value }) => labels['http_route'] === '/v1/agency/boards' && value > 0,
        );
      },
      { timeoutMs: 240_000, everyMs: 500, what: query },
    );
  });
});

itWithPrometheus(
  'requests_slow: the query names the process whose loop is blocked, and the debugger opens it',
  async () => {
    const page = pageOf('requests_slow');
    const query = page.says('max by (process)');
    await until(
      async () => {
        await whileFrozen('agency', () => sleep(700));
        return (await prometheus?.ask(query))?.some(
          ({ labels, value }) => labels['process'] === 'agency' && value > 0.5,
        );
      },
      { timeoutMs: 240_000, everyMs: 300, what: query },
    );
    const PID = String(pidOf('agency'));
    expect(await shell(`${page.says('vmstat')} 1`)).toContain('procs');
    await shell(page.says('kill -USR1', { PID }));
    expect(await shell(`{ sleep 3; echo .exit; } | ${page.says('node inspect', { PID })}`)).toContain('ok');
    // The page says that a restart of the process loses nothing.
    await stack.killAndWait('agency');
  },
);

test('postgres_slow: the statements show who waits, for whom, and ending that session lets the request through', async () => {
  const page = pageOf('postgres_slow');
  const url = databaseOf('agency');
  const forgotten = new Client({ connectionString: url });
  forgotten.on('error', () => undefined);
  await forgotten.connect();
  await forgotten.query('BEGIN; LOCK TABLE boards');
  const { rows } = await forgotten.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const asked = customer.insist('GET', '/v1/agency/boards');
  const mine = new Client({ connectionString: url });
  await mine.connect();
  await mine.query(page.says('SET ROLE NONE'));
  const ask = async (text: string): Promise<Record<string, unknown>[]> =>
    (await mine.query<Record<string, unknown>>(text)).rows;
  const waiting = await until(async () => (await ask(page.says('SELECT pid, pg_blocking_pids'))).at(0), {
    what: 'a session that waits',
  });
  expect(waiting['pg_blocking_pids']).toEqual([rows[0]?.pid]);
  const sessions = await ask(page.says('SELECT pid, state'));
  expect(sessions).toContainEqual(expect.objectContaining({ pid: waiting['pid'], wait_event_type: 'Lock' }));
  expect(sessions).toContainEqual(expect.objectContaining({ pid: rows[0]?.pid, state: 'idle in transaction' }));
  expect(Object.keys((await ask(page.says('SELECT relname')))[0] ?? {})).toEqual([
    'relname',
    'n_dead_tup',
    'last_autovacuum',
  ]);
  await ask(`SELECT ${page.says('pg_terminate_backend')}(${rows[0]?.pid})`);
  expect((await asked).status).toBe(200);
  await mine.end();
});

test('audit_not_delivered: what waits is counted in the service, and falls to nothing once keys takes it', async () => {
  const page = pageOf('audit_not_delivered');
  const url = databaseOf('hosting');
  const counted = page.says('SELECT count(*), min(at) FROM audit_outbox');
  const waitingIn = async (table: string): Promise<number> =>
    Number((await sql(url, counted.replace(page.says('audit_outbox'), table)))[0]?.['count']);
  const location = await restore();
  await whileFrozen('keys', async () => {
    await until(async () => (await waitingIn(page.says('workflow_event'))) > 0, {
      timeoutMs: 120_000,
      what: 'events that wait',
    });
    await until(
      () => /(?:events|audit entries) could not be delivered/.test(stack.log('hosting') + stack.log('hosting-worker')),
      {
        timeoutMs: 120_000,
        what: page.says('events could not be delivered'),
      },
    );
  });
  expect(await customer.follow(location)).toMatchObject({ status: 'succeeded' });
  await until(async () => (await waitingIn('audit_outbox')) + (await waitingIn('workflow_event')) === 0, {
    timeoutMs: 120_000,
    what: 'delivery',
  });
  expect((await customer.call('GET', `${page.says('GET /v1/events').slice('GET '.length)}?limit=100`)).text).toContain(
    location.split('/').at(-1),
  );
  expect((await customer.call('GET', page.says('GET /v1/audit-log').slice('GET '.length))).status).toBe(200);
});

/** Requests a restore in which five workers in a row die, so that it waits for staff. Resolves with its Location. */
async function parkRestore(): Promise<string> {
  faults.arm('restore_backup.verify.before', 'kill', 5);
  const location = await restore();
  await until(
    async () => {
      await stack.expireLeases('hosting');
      const { body } = await customer.insist('GET', location);
      return z.looseObject({ status: z.string() }).parse(body).status === 'needs_attention';
    },
    { timeoutMs: 300_000, everyMs: 500, what: 'a restore that waits for staff' },
  );
  return location;
}

test('needs_attention: staff find what waits, and retry it or abandon it', async () => {
  const page = pageOf('needs_attention');
  const staff = (service: string, verb: string, fills = {}) =>
    shell(page.says(`node services/${service}/dist/command.js ${verb}`, fills), { DATABASE_URL: databaseOf(service) });
  const key = { DRYDOCK_URL: stack.demo.base_url, DRYDOCK_KEY: stack.demo.live_key };

  const retried = await parkRestore();
  const WORKFLOW_ID = retried.split('/').at(-1) ?? '';
  expect(await staff('hosting', 'parked')).toMatch(
    new RegExp(`^${WORKFLOW_ID}  restore_backup  live.*\n.*\n.*\n  cause: 5 workers in a row died over it`, 'm'),
  );
  for (const service of ['compute', 'databases'])
    expect(await staff(service, 'parked')).toBe('nothing waits for staff\n');
  expect(
    await shell(
      `npm run --silent ${page.says('drydock workflows list').replace('drydock', 'drydock --')} -o json`,
      key,
    ),
  ).toContain(WORKFLOW_ID);
  if (prometheus !== null)
    await seriesOf(
      'sum by (kind) (workflow_needs_attention)',
      ({ labels, value }) => labels['kind'] === 'restore_backup' && value === 1,
    );
  await staff('hosting', 'retry', { WORKFLOW_ID });
  expect(await customer.follow(retried)).toMatchObject({ status: 'succeeded' });

  const abandoned = await parkRestore();
  await staff('hosting', 'abandon', { WORKFLOW_ID: abandoned.split('/').at(-1) ?? '' });
  expect(await customer.follow(abandoned)).toMatchObject({ status: 'failed', error: { code: 'abandoned' } });
  // Scheduled workflows that the killed workers carried may wait for staff as well, so only restores are checked.
  expect(await staff('hosting', 'parked')).not.toContain('restore_backup');
  if (prometheus !== null)
    await seriesOf(
      'sum by (kind) (workflow_needs_attention)',
      ({ labels, value }) => labels['kind'] === 'restore_backup' && value === 0,
    );
});

test('workflows_fail: the statement tells by which code a kind fails, and the cause that customers are not told', async () => {
  const statement = pageOf('workflows_fail').says("SELECT error ->> 'code'", { KIND: 'restore_backup' });
  expect(await sql(databaseOf('hosting'), statement)).toEqual([
    { code: 'abandoned', count: '1', max: '5 workers in a row died over it' },
  ]);
});

test('claims_lost: a worker that stood still for longer than its lease says so', async () => {
  const page = pageOf('claims_lost');
  const url = databaseOf('hosting');
  let location = '';
  // While the site agent is frozen, the workflow stays in its step, so that the worker can be frozen within this step.
  await whileFrozen('site-host', async () => {
    location = await restore();
    const id = location.split('/').at(-1) ?? '';
    await until(
      async () =>
        (await sql(url, `SELECT FROM workflow WHERE id = '${id}' AND lease_until > clock_timestamp()`)).length === 1,
      {
        timeoutMs: 60_000,
        what: 'a claim',
      },
    );
    await whileFrozen('hosting-worker', () =>
      until(
        async () =>
          (await sql(url, `SELECT FROM workflow WHERE id = '${id}' AND lease_until < clock_timestamp()`)).length === 1,
        {
          timeoutMs: 120_000,
          what: 'an overdue lease',
        },
      ).then(() => undefined),
    );
    await until(() => stack.log('hosting-worker').includes(page.says('lease overdue')), {
      timeoutMs: 60_000,
      what: 'the line of the log',
    });
    expect(stack.log('hosting-worker')).toContain(page.says('late_ms'));
  });
  expect(await customer.follow(location)).toMatchObject({ status: 'succeeded' });
});

test('immutability_lost: the statement has the bucket checked at once, the alarm tells of a lock that does not hold, and is over with it', async () => {
  const statement = pageOf('immutability_lost').says('UPDATE workflow_schedule');
  const admin = {
    authorization: `Bearer ${stack.variable('s3-stand-in', 'ADMIN_TOKEN')}`,
    'content-type': 'application/json',
  };
  const reasonAfterCheck = async (reason: string): Promise<void> => {
    await sql(databaseOf('hosting'), statement);
    await until(
      async () =>
        siteBackupSurfaceSchema.parse((await customer.insist('GET', `/v1/sites/${site.id}/backups`)).body)
          .immutability_reason === reason,
      { timeoutMs: 120_000, everyMs: 500, what: `immutability_reason ${reason}` },
    );
  };
  await reasonAfterCheck('');
  const lie = { method: 'DELETE', path: '/canary/[^?]*(?<!-control)\\?', answer: { kind: 'fixed', status: 204 } };
  expect(
    (
      await fetch(`${addressOf('s3-stand-in')}/emulator/faults`, {
        method: 'POST',
        headers: admin,
        body: JSON.stringify(lie),
      })
    ).status,
  ).toBe(204);
  await reasonAfterCheck('delete_succeeded');
  expect(stack.log('hosting-worker')).toContain('"alarm":"immutability_lost"');
  await reasonAfterCheck('');
});

itWithRedis(
  'work_not_taken_up: the queue is asked by its own client, and the worker says that it does not answer',
  async () => {
    const page = pageOf('work_not_taken_up');
    const line = page.says('GET /readyz');
    const queue = new URL(stack.variable('hosting-worker', 'QUEUE_URL'));
    const redis = (text: string) =>
      shell(text.replace('redis-cli', `redis-cli -h ${queue.hostname} -p ${queue.port} --no-auth-warning`), {
        REDISCLI_AUTH: decodeURIComponent(queue.password),
      });
    expect(await redis(page.says('redis-cli ping'))).toBe('PONG\n');
    expect(await redis(page.says('redis-cli info memory'))).toContain(`maxmemory_policy:${page.says('noeviction')}`);
    let location = '';
    await whileFrozen('redis', async () => {
      await until(async () => /"queue":"(?!ok)/.test((await probe('hosting-worker', line))?.text ?? ''), {
        timeoutMs: 120_000,
        what: page.says('queue'),
      });
    });
    await whileFrozen('site-host', async () => {
      location = await restore();
      if (prometheus !== null)
        await seriesOf(
          page.says('sum by (kind)'),
          ({ labels, value }) => labels['kind'] === 'restore_backup' && value === 1,
        );
    });
    expect(await customer.follow(location)).toMatchObject({ status: 'succeeded' });
  },
);

asRoot('trash_not_removed: a path that the file system keeps is found, freed, and removed by hand', async () => {
  const page = pageOf('trash_not_removed');
  const SITES_DIR = stack.variable('site-host', 'SITES_DIR');
  const kept = path.join(site.filesDir, 'kept.txt');
  writeFileSync(kept, 'an operator made it unchangeable');
  chownSync(kept, 0, 0);
  await shell(`chattr +i ${kept}`);
  expect(await customer.follow(await restore())).toMatchObject({ status: 'succeeded' });
  const left = `${SITES_DIR}/trash`;
  // The replaced release cannot be removed whole, because one of its files is immutable.
  const found = page.says('find SITES_DIR', { SITES_DIR });
  const path1 = await until(async () => (await shell(`find ${left} -name kept.txt`)).trim(), {
    timeoutMs: 120_000,
    what: 'the kept file in the trash',
  });
  await until(() => stack.log('site-host').includes('"named"'), { timeoutMs: 240_000, what: page.says('named') });
  expect(Number(await shell(found))).toBeGreaterThan(1);
  expect(await shell(`${page.says('ls -lan')} ${path.dirname(path1)}`)).toContain('kept.txt');
  expect(await shell(`${page.says('lsattr')} ${path1}`)).toMatch(/^\S*i/);
  await shell(`${page.says('findmnt')} -T ${path1}`);
  await shell(`${page.says('chattr')} ${path1}`);
  const folder = path.relative(left, path1).split(path.sep)[0] ?? '';
  await shell(page.says('rm -rf', { SITES_DIR, '<folder>': folder }));
  expect(await shell(`find ${left} -name kept.txt`)).toBe('');
});

test('every command of every page is run here', () => {
  const skipped = [
    ...(itWithPrometheus === test ? [] : ['sum by', 'max by', 'vmstat', 'kill', 'node inspect']),
    ...(itWithRedis === test ? [] : ['redis-cli', 'GET /readyz']),
    ...(asRoot === test ? [] : ['ls', 'chattr', 'find', 'rm']),
  ];
  const notAsked = [...runbooks.values()].flatMap((page) => page.notAsked());
  expect(notAsked.filter((text) => !skipped.some((start) => text.includes(`: ${start}`)))).toEqual([]);
});
