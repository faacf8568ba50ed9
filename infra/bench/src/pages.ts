import { randomBytes, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { startPostgres } from '@drydock/postgres';
import pg from 'pg';
import { z } from 'zod';
import { type Child, startChild } from './children';
import { type LoadResult, runLoad } from './load';
import { median } from './measure';
import { query } from './pages-peer';
import { printRows, type Row, say } from './report';
import { withWorkspace } from './workspace';

const rounds = 5;
const seconds = 4;
const rows = 1_000;
const here = path.resolve(__dirname, '../../..');
const peerScript = path.join(__dirname, 'pages-peer.js');
const styleSheet = `${'.entry { color: #123456; margin: 0 auto; }\n'.repeat(240)}`;
const app =
  "require('node:http').createServer((_, answer) => answer.end('It is said and written. '.repeat(40))).listen(1)";
const page = `<!doctype html><title>Posts</title><ul><?each ${query} ?><li><b>{{title}}</b> {{body}}</li>\n<?end?></ul>`;
const recordSchema = z.object({ role: z.string(), password: z.string(), database_port: z.int(), http_port: z.int() });

interface SiteHost {
  createSiteHostClient(target: { url: string; secret: string }): {
    ensureSite(
      siteId: string,
      wanted: { domain: string },
      claim: { fence: string; workflowId: string },
    ): Promise<unknown>;
    close(): Promise<void>;
  };
}

interface ServedSite {
  url: string;
  appUrl: string;
  filesDir: string;
  databaseUrl: string;
}

/**
 * Creates two sites at the site agent `host`, which was built in the checkout `tree`. The first site has a style sheet
 * and a page of rows. The second site has an application.
 */
async function makeSite(
  tree: string,
  host: Child,
  { sitesDir, secret }: { sitesDir: string; secret: string },
): Promise<ServedSite> {
  const { createSiteHostClient }: SiteHost = require(path.join(tree, 'packages/agent/dist/clients/site-client.js'));
  const client = createSiteHostClient({ url: host.url, secret });
  const open = async (): Promise<{ record: z.infer<typeof recordSchema>; filesDir: string }> => {
    const siteId = randomUUID();
    await client.ensureSite(siteId, { domain: 'bench.example' }, { fence: '1', workflowId: randomUUID() });
    const folder = path.join(sitesDir, 'live', siteId);
    const record = recordSchema.parse(JSON.parse(fs.readFileSync(path.join(folder, 'site.json'), 'utf8')));
    return { record, filesDir: fs.realpathSync(path.join(folder, 'current', 'files')) };
  };
  const { record, filesDir } = await open();
  const withApp = await open();
  await client.close();
  fs.writeFileSync(path.join(withApp.filesDir, 'app.js'), app);
  fs.writeFileSync(path.join(filesDir, 'style.css'), styleSheet);
  fs.writeFileSync(path.join(filesDir, 'index.html'), page);
  const databaseUrl = `postgresql://${record.role}:${record.password}@127.0.0.1:${record.database_port}/site`;
  await fillDatabase(databaseUrl);
  const [url, appUrl] = [record, withApp.record].map(({ http_port: port }) => `http://127.0.0.1:${port}`);
  return { url: url ?? '', appUrl: appUrl ?? '', filesDir, databaseUrl };
}

async function fillDatabase(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query('create table posts (id int primary key, title text not null, body text not null)');
  const fill =
    "insert into posts select n, 'Post <' || n || '>', repeat('It is said & written. ', 8) from generate_series(1, $1::int) as made (n)";
  await client.query(fill, [rows]);
  await client.query('analyze posts');
  await client.end();
}

/**
 * Measures how fast a site agent serves a static file, a page of rows and an application. One bare peer serves the same
 * file, and another renders the rows of the same query. DRYDOCK_BENCH_TREE may name another built checkout, whose site
 * agent is measured in the same rounds.
 */
export async function benchPages(): Promise<void> {
  await withWorkspace('pages', async (folder) => {
    fs.chmodSync(folder, 0o711);
    const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), account: null });
    const started: Child[] = [];
    const start = async (script: string, env: Record<string, string>): Promise<Child> => {
      const child = await startChild(script, env);
      started.push(child);
      return child;
    };
    const openHost = async (tree: string, name: string): Promise<ServedSite> => {
      const place = { sitesDir: path.join(folder, name), secret: randomBytes(32).toString('hex') };
      const env = { SITES_DIR: place.sitesDir, SITE_HOST_SECRET: place.secret, SITES_DATABASE_URL: postgres.adminUrl };
      const host = await start(path.join(tree, 'services/site-agent/dist/server.js'), {
        SERVICE_NAME: 'site-host',
        ...env,
      });
      return makeSite(tree, host, place);
    };
    try {
      const ours = await openHost(here, 'ours');
      const other = process.env['DRYDOCK_BENCH_TREE'];
      const others =
        other === undefined
          ? []
          : [['site host of the other tree', await openHost(path.resolve(other), 'other')] as const];
      const files = await start(peerScript, { ROLE: 'express.static', FILES_DIR: ours.filesDir });
      const database = new URL(ours.databaseUrl);
      const bare = await start(peerScript, {
        ROLE: 'express and pg',
        DATABASE_URL: await directUrlOf(postgres.adminUrl, database),
      });
      await compare('a file of 10 kB', 0.5, [
        ['site host', `${ours.url}/style.css`],
        ['express.static', `${files.url}/style.css`],
        ...others.map(([name, site]): [string, string] => [name, `${site.url}/style.css`]),
      ]);
      await compare('a page with a query of 10 rows', 0.5, [
        ['site host', `${ours.url}/`],
        ['express and pg', `${bare.url}/`],
        ...others.map(([name, site]): [string, string] => [name, `${site.url}/`]),
      ]);
      const apps: [string, string][] = [['site host', ours] as const, ...others].map(([name, site]) => [
        name,
        `${site.appUrl}/`,
      ]);
      for (const connections of [32, 1]) await compare('an application', 0.5, apps, connections);
    } finally {
      await Promise.all(started.map((child) => child.stop()));
      await postgres.stop();
    }
  });
}

/**
 * Returns the URL with which a superuser of the cluster connects to the site's database. With it the peer connects to
 * Postgres directly, and not through the site agent.
 */
async function directUrlOf(adminUrl: string, site: URL): Promise<string> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  const owned = 'select datname from pg_database where pg_get_userbyid(datdba) = $1';
  const { rows: found } = await admin.query<{ datname: string }>(owned, [site.username]);
  await admin.end();
  return Object.assign(new URL(adminUrl), { pathname: `/${found[0]?.datname ?? ''}` }).href;
}

/** Puts load on each contestant once in each round, and prints the rows. The first contestant is Drydock. */
async function compare(
  what: string,
  bar: number,
  contestants: ReadonlyArray<readonly [name: string, url: string]>,
  connections = 32,
): Promise<void> {
  const results = new Map<string, LoadResult[]>(contestants.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, url] of contestants) {
      const result = await runLoad({ url, seconds, connections });
      results.get(name)?.push(result);
      say(`round ${round + 1}: ${name}, ${what}: ${shown(result)}`);
    }
  }
  const [ours, ...peers] = contestants.map(([name]) => ({ name, result: middle(results.get(name) ?? []) }));
  if (ours === undefined) throw new Error('nothing was measured');
  const rows = peers.map(
    ({ name, result }): Row => ({
      what: `${what}, ${connections} connections`,
      ours: shown(ours.result),
      peer: name,
      peerValue: shown(result),
      ratio: ours.result.requestsPerSecond / result.requestsPerSecond,
      ...(name.startsWith('express') && { bar }),
    }),
  );
  printRows('Serving pages', rows, `Median of ${rounds} rounds.`);
}

function middle(results: readonly LoadResult[]): LoadResult {
  const of = (pick: (result: LoadResult) => number): number => median(results.map(pick));
  return {
    requestsPerSecond: of(({ requestsPerSecond }) => requestsPerSecond),
    cpuMicroseconds: undefined,
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
  };
}

const shown = ({ requestsPerSecond, p50Ms, p99Ms }: LoadResult): string =>
  `${requestsPerSecond.toFixed(0)} req/s, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;
