import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestStack } from '@drydock/testing/stack';
import type { AttackerSetup, Tally } from './attacker.program';
import { slowApp } from './greedy-attacks';
import { put, sql, type Tenant, type TenantDatabase, type TenantSite } from './tenant';

/** The compiled program. The relative path holds for src/ and for dist/. */
const program = path.resolve(__dirname, '../../dist/e2e/attacker.program.js');

const hugeBytes = 600_000_000;
/** The size of the hostile template. The site agent renders templates of up to 1 MiB. */
const templateBytes = 720_000;

/**
 * Functions that attack the site agent. Postgres calls `lift` while it plans a statement, and `lift` removes the time
 * limit of the statement.
 */
const hostileSql = `
  create function lift() returns text immutable language plpgsql as $$ begin return set_config('statement_timeout', '0', false); end $$;
  create function shout() returns text language plpgsql as
    $$ begin perform set_config('client_min_messages', 'notice', false); raise notice '%', repeat('x', ${hugeBytes}); return 'said'; end $$;
  create function slow(int) returns boolean language plpgsql as $$ begin return true; end $$;
  create table slept (n int check (slow(n)));
  insert into slept values (1);
  create or replace function slow(int) returns boolean language plpgsql as $$ begin perform lift(); perform pg_sleep(3600); return true; end $$;
`;

const pages = {
  huge: { path: 'huge.html', text: `<?sql select repeat('x', ${hugeBytes}) where lift() is not null ?>` },
  notice: { path: 'notice.html', text: '<?sql select shout() where lift() is not null ?>' },
  quadratic: { path: 'quadratic.html', text: '<?sql '.repeat(templateBytes / 6) },
};

export interface Attacker {
  start(): Promise<void>;
  /** Returns how often each answer came so far, for example 812 times `bodies 503 overloaded`. */
  tally(): Promise<Tally>;
  /** The paths of the workflows of the restores that `start` has requested. */
  restores: string[];
  stop(): Promise<void>;
}

/**
 * Creates 2 * `sitesOfAnAttack` hostile sites. The attacker requests the pages of the first half. It restores the sites
 * of the second half, whose CHECK constraints sleep for an hour, and uses up the sessions of their databases.
 */
export async function prepareAttacker(stack: TestStack, tenant: Tenant, sitesOfAnAttack: number): Promise<Attacker> {
  const sites = await Promise.all(
    Array.from({ length: 2 * sitesOfAnAttack }, (_, n) => tenant.makeSite(`worst-${n}.example.com`)),
  );
  await Promise.all(sites.map(makeHostile));
  const [shown, restored] = [sites.slice(0, sitesOfAnAttack), sites.slice(sitesOfAnAttack)];
  const backups = await Promise.all(restored.map(async ({ id }) => (await tenant.takeBackup(id)).id));
  const keys: [string, string] = [
    await tenant.mintKey(['sites.view', 'sites.create']),
    await tenant.mintKey(['sites.create']),
  ];
  const { begin, tally, stop } = attackerProcess();
  const restores: string[] = [];
  return {
    restores,
    start: async () => {
      for (const [n, site] of restored.entries()) {
        const { location } = await tenant.must('POST', `/v1/sites/${site.id}/backups/restore`, {
          backup_id: backups[n],
        });
        restores.push(location);
      }
      begin({
        kind: 'worst',
        gatewayPort: Number(new URL(stack.demo.base_url).port),
        keys,
        siteUrls: shown.map(({ url }) => url),
        databaseUrls: restored.map(({ databaseUrl }) => databaseUrl),
        pages: Object.fromEntries(Object.entries(pages).map(([name, page]) => [name, page.path])),
        events: `${restores[0]}/events`,
      });
    },
    tally,
    stop,
  };
}

/**
 * Prepares an organisation that uses up shared resources. It has sites, one of them with an application, and a managed
 * database. It also connects to `others`, the managed database of another organisation.
 */
export async function prepareTaker(tenant: Tenant, others: TenantDatabase): Promise<Omit<Attacker, 'restores'>> {
  const names = ['slow', 'locks', 'ids', 'gone'];
  const [slow, ...sites] = await Promise.all(names.map((name) => tenant.makeSite(`taker-${name}.example.com`)));
  if (slow === undefined) throw new Error('no site was made');
  put(slow, 'app.js', slowApp);
  const own = await tenant.makeDatabase('taker', '16');
  const { begin, tally, stop } = attackerProcess();
  return {
    start: async () =>
      begin({
        kind: 'greedy',
        appUrls: [slow.url],
        databaseUrls: sites.map(({ databaseUrl }) => databaseUrl),
        ownDatabaseUrl: own.url,
        othersAddress: { host: others.host, port: others.port },
      }),
    tally,
    stop,
  };
}

/**
 * Runs the attacks in a process of their own, so that they do not slow down this process, which measures. The attacking
 * process has a low priority, because a real attacker has its own machine.
 */
function attackerProcess(): { begin(setup: AttackerSetup): void } & Pick<Attacker, 'tally' | 'stop'> {
  let child: ChildProcess | undefined;
  return {
    begin: (setup) => {
      child = fork(program, { stdio: 'inherit' });
      if (child.pid !== undefined) os.setPriority(child.pid, os.constants.priority.PRIORITY_LOW);
      child.send(setup);
    },
    tally: async () => {
      if (child === undefined) return {};
      const answered = once(child, 'message');
      child.send('tally');
      const [tally] = (await answered) as [Tally];
      return tally;
    },
    stop: async () => {
      if (child === undefined) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function makeHostile(site: TenantSite): Promise<void> {
  await sql(site.databaseUrl, hostileSql);
  for (const { path: name, text } of Object.values(pages)) put(site, name, text);
}

/** The results of one kind of call. */
export interface Samples {
  ms: number[];
  /** The answers that differ from the expected answer. */
  failures: string[];
}
export type Measured = Record<string, Samples>;

export const percentile = (ms: readonly number[], share: number): number => {
  const sorted = [...ms].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
};

/**
 * The organisation whose calls must keep working: its pages, keys, sites, logins and backups. The backups are spread
 * over several sites, because a site may have five backups a day.
 */
export class Neighbour {
  private readonly tenant: Tenant;
  private readonly site: TenantSite;
  private readonly backupSites: TenantSite[];
  private readonly calls: Readonly<Record<string, () => Promise<{ ms: number; problem: string }>>>;

  private constructor(
    tenant: Tenant,
    site: TenantSite,
    backupSites: TenantSite[],
    database: TenantDatabase | undefined,
  ) {
    this.tenant = tenant;
    this.site = site;
    this.backupSites = backupSites;
    this.calls = {
      'list sites': () => this.ask('GET', '/v1/sites', 200),
      'read a site': () => this.ask('GET', `/v1/sites/${site.id}`, 200),
      'list keys': () => this.ask('GET', '/v1/api-keys?limit=10', 200),
      'mint a key': () => this.ask('POST', '/v1/api-keys', 201, { name: 'one more', scopes: ['sites.view'] }),
      'view a file': () => this.view('', 'open as usual'),
      'view a page with a query': () => this.view('stock.html', '5050 in stock'),
      "log in to the site's database": () => logIn(() => sql(site.databaseUrl, 'SELECT 1')),
      ...(database === undefined
        ? {}
        : { 'log in to a managed database': () => logIn(() => database.query('SELECT 1')) }),
    };
  }

  /** Creates the sites. If a managed `database` is given, one of the measured calls is a login to it. */
  static async prepare(tenant: Tenant, backupSiteCount: number, database?: TenantDatabase): Promise<Neighbour> {
    const names = ['shop', ...Array.from({ length: backupSiteCount }, (_, n) => `quiet-${n}`)];
    const [site, ...backupSites] = await Promise.all(names.map((name) => tenant.makeSite(`${name}.example.org`)));
    if (site === undefined) throw new Error('no site was made');
    put(site, 'index.html', 'open as usual');
    put(site, 'stock.html', '<?sql select sum(n) from generate_series(1, 100) n ?> in stock');
    return new Neighbour(tenant, site, backupSites, database);
  }

  /**
   * Repeats every call until `isEnough` returns true after a round. Meanwhile the neighbour takes backups, one after
   * the other.
   */
  async measure(isEnough: (rounds: number) => boolean | Promise<boolean>, backupCount: number): Promise<Measured> {
    const measured: Measured = {};
    let isOver = false;
    const backups = this.measureBackups(measured, backupCount, () => isOver);
    for (let rounds = 1; ; rounds += 1) {
      for (const [name, call] of Object.entries(this.calls)) await timed(measured, name, call);
      if (await isEnough(rounds)) break;
      await sleep(roundPauseMs);
    }
    isOver = true;
    await backups;
    return measured;
  }

  private async ask(
    method: string,
    route: string,
    expected: number,
    body?: unknown,
  ): Promise<{ ms: number; problem: string }> {
    const { status, text, ms } = await this.tenant.call(method, route, body);
    return { ms, problem: status === expected ? '' : `${status} ${text}` };
  }

  private async view(page: string, expected: string): Promise<{ ms: number; problem: string }> {
    const startedMs = performance.now();
    const response = await fetch(new URL(page, this.site.url), { signal: AbortSignal.timeout(callMs) });
    const text = await response.text();
    return {
      ms: performance.now() - startedMs,
      problem: response.status === 200 && text === expected ? '' : `${response.status} ${text}`,
    };
  }

  private async measureBackups(measured: Measured, backupCount: number, isOver: () => boolean): Promise<void> {
    for (let n = 0; n < backupCount && !isOver(); n += 1) {
      const site = this.backupSites[n % this.backupSites.length];
      if (site === undefined) return;
      const startedMs = performance.now();
      try {
        const { acceptedMs, completedMs } = await this.tenant.takeBackup(site.id);
        samplesOf(measured, 'take a backup, accepted').ms.push(acceptedMs);
        samplesOf(measured, 'take a backup, completed').ms.push(completedMs);
      } catch (error) {
        samplesOf(measured, 'take a backup, completed').failures.push(
          `after ${Math.round(performance.now() - startedMs)} ms: ${String(error)}`,
        );
      }
    }
  }
}

async function logIn(work: () => Promise<unknown>): Promise<{ ms: number; problem: string }> {
  const startedMs = performance.now();
  await work();
  return { ms: performance.now() - startedMs, problem: '' };
}

const roundPauseMs = 50;
/** The time limit of a call. It is long, because other suites may slow the machine down. */
const callMs = 120_000;

function samplesOf(measured: Measured, name: string): Samples {
  measured[name] ??= { ms: [], failures: [] };
  return measured[name];
}

async function timed(
  measured: Measured,
  name: string,
  call: () => Promise<{ ms: number; problem: string }>,
): Promise<void> {
  const samples = samplesOf(measured, name);
  try {
    const { ms, problem } = await call();
    samples.ms.push(ms);
    if (problem !== '') samples.failures.push(problem);
  } catch (error) {
    samples.failures.push(String(error));
  }
}

export const failuresOf = (measured: Measured): string[] =>
  Object.entries(measured).flatMap(([name, { failures }]) =>
    failures.map((failure) => `${name}: ${failure.slice(0, 300)}`),
  );

export interface Comparison {
  name: string;
  quietMs: number;
  worstMs: number;
  ratio: number;
}

/** Returns the p99 of each call without an attack (`quietMs`) and during the attack (`worstMs`), and their ratio. */
export const compare = (quiet: Measured, attacked: Measured): Comparison[] =>
  Object.entries(quiet).map(([name, { ms }]) => {
    const [quietMs, worstMs] = [percentile(ms, 0.99), percentile(attacked[name]?.ms ?? [], 0.99)];
    return { name, quietMs, worstMs, ratio: worstMs / quietMs };
  });

/** Renders the table for docs/benchmarks.md. */
export function reportOf(quiet: Measured, attacked: Measured, tally: Tally): string {
  const lines = compare(quiet, attacked).map(({ name, quietMs, worstMs, ratio }) => {
    const [before, during] = [quiet[name]?.ms ?? [], attacked[name]?.ms ?? []];
    const medians = `${percentile(before, 0.5).toFixed(1)} | ${percentile(during, 0.5).toFixed(1)}`;
    return `| ${name} | ${before.length} | ${during.length} | ${medians} | ${quietMs.toFixed(1)} | ${worstMs.toFixed(1)} | ${ratio.toFixed(1)} |`;
  });
  const machine = `${os.cpus().length} × ${os.cpus()[0]?.model ?? ''}, ${Math.round(os.totalmem() / 2 ** 30)} GB, load ${os.loadavg()[0]?.toFixed(1)}`;
  const head = '| call | quiet n | attacked n | quiet p50, ms | attacked p50 | quiet p99 | attacked p99 | times |';
  return `\n${machine}\n${head}\n|---|---|---|---|---|---|---|---|\n${lines.join('\n')}\n${JSON.stringify(tally)}\n`;
}
