/**
 * Restores sites with the files and databases of real programs: from a backup, after a deletion, and from a copy.
 *
 * @tier chaos
 * @processes
 */
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { fillTables } from '@drydock/postgres/testing/fill-tables';
import { withClient } from '@drydock/postgres/testing/run-sql';
import { asReadAgain, listRealSchemas, statementsOf } from '@drydock/postgres/testing/schema-corpus';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { skipTests } from '@drydock/testing/skipped';
import type pg from 'pg';
import { deletionOf } from '../../test/deleted-site';
import { makeBackup, makeSite } from '../../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../../test/offsite-world';
import { pageOf } from '../../test/site-state';
import { differences, missingForTrees, readTree, type Tree } from '../../test/trees/read-tree';
import { copyTree, missingTree, realTrees } from '../../test/trees/real-trees';

/**
 * Each site has the schema of a Debian package, with rows, and the files of a Debian package. After changes the site is
 * restored from its backup, from its deletion and from the customer's own storage. `-t` with the name of a schema or a
 * tree runs only the pairs that contain it.
 */

const pairs: readonly (readonly [schema: string, tree: string])[] = [
  ['davical', 'davical'],
  ['openqa', 'openqa'],
  ['tryton-server', 'tryton'],
  ['glewlwyd', 'postfixadmin'],
  ['osmosis', 'mathjax'],
  ['icingaweb2-module-director', 'horizon'],
  ['icingaweb2-module-reporting', 'lava'],
  ['icingaweb2', 'sogo'],
  ['icingaweb2-module-idoreports', 'ocsinventory'],
  ['coturn', 'prosody-modules'],
  ['libminion-perl', 'mailman'],
  ['libtheschwartz-perl', 'sympa'],
  ['oar-server', 'zoneminder'],
  ['php-sabre-dav', 'zoph'],
  ['pmacct', 'mercurial'],
  ['spamassassin', 'vim'],
  ['postgresql-15-pgtap', 'python-doc'],
  ['collectd-core', 'davical'],
  ['libnss-pgsql2', 'lava'],
  ['python-biopython-doc', 'openqa'],
  ['request-tracker4', 'zoph'],
  ['vmm', 'postfixadmin'],
  ['w1retap-doc', 'prosody-modules'],
];

jest.setTimeout(1_200_000);
const schemas = new Map(listRealSchemas().map(({ name, sql }) => [name, sql]));
const here = pairs.filter(([schema, tree]) => schemas.has(schema) && realTrees.includes(tree));

interface Content {
  page: string;
  tree: Tree;
  statements: string[];
  /** The number of rows and a checksum, by table. A sequence counts as a table with one row. */
  rows: Map<string, string>;
}

let world: OffsiteWorld;
beforeAll(async () => {
  world = await openOffsiteWorld('postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

const relationsSql = `select oid::regclass::text as name, relkind as kind from pg_class
  where relkind in ('r', 'S', 'm') and relpersistence <> 't'
  and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace) order by 1`;

/** Reads checksums of the rows with SQL statements that the code of backups does not use. */
async function rowsOf(client: pg.Client): Promise<Map<string, string>> {
  const rows = new Map<string, string>();
  for (const { name, kind } of (await client.query<{ name: string; kind: string }>(relationsSql)).rows) {
    // Only a sequence's position and use are compared, because `log_cnt` is internal to Postgres.
    const line = kind === 'S' ? 'row(last_value, is_called)' : 'row(t.*)';
    const sum = "count(*) || ' ' || coalesce(md5(string_agg(md5(line), '' order by md5(line))), '')";
    const sql = `select ${sum} as sum from (select ${line}::text from only ${name} t) x (line)`;
    rows.set(name, (await client.query<{ sum: string }>(sql)).rows[0]?.sum ?? '');
  }
  return rows;
}

async function contentOf(siteId: string): Promise<Content> {
  const { filesDir, databaseUrl: url, uid } = await world.placeOf(siteId);
  const directory = realpathSync(filesDir);
  const account = `${uid ?? process.getuid?.()}:${statSync(directory).gid}`;
  // A site that was deleted and restored has another system account, so the tree names the account `the site`.
  const owner = (name: string): string => (name === account ? 'the site' : name);
  const tree = new Map(
    [...readTree(directory)].map(([name, facts]) => [name, { ...facts, owner: owner(facts.owner) }]),
  );
  const statements = (await statementsOf(url, new URL(url).username)).map(asReadAgain);
  const page = await pageOf((await world.host.readSite(siteId)).url);
  return { page, tree, statements, rows: await withClient(url, rowsOf) };
}

function expectSame({ tree: is, ...after }: Content, { tree: was, ...before }: Content): void {
  expect(differences(was, is)).toEqual([]);
  expect(after).toEqual(before);
}

/**
 * Writes a page that shows a version from its own file and a version from a row. The row is in a schema of the test,
 * which no program uses.
 */
async function showVersion(siteId: string, version: number): Promise<void> {
  const { filesDir, databaseUrl } = await world.placeOf(siteId);
  const page = path.join(filesDir, 'index.html');
  writeFileSync(page, `file=${version} row=<?sql select v from drydock_test.version ?>`);
  const { uid, gid } = statSync(realpathSync(filesDir));
  chownSync(page, uid, gid);
  const sql = `create schema if not exists drydock_test; create table if not exists drydock_test.version (v int);
    delete from drydock_test.version; insert into drydock_test.version values (${version})`;
  await withClient(databaseUrl, (client) => client.query(sql));
}

async function fill(siteId: string, schema: string, tree: string): Promise<void> {
  const { filesDir, databaseUrl } = await world.placeOf(siteId);
  const directory = realpathSync(filesDir);
  copyTree(tree, directory, statSync(directory));
  const { empty, ...filled } = await withClient(databaseUrl, async (client) => {
    await client.query(schemas.get(schema) ?? '');
    return fillTables(client, 8);
  });
  const without = empty.length === 0 ? '' : `, without rows: ${empty.join(', ')}`;
  process.stderr.write(`${schema}: ${JSON.stringify(filled)}${without}\n`);
  await showVersion(siteId, 1);
}

/** Deletes some rows of each table whose constraints allow it. */
const removeRows = `do $$ declare t record; begin
  for t in select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) loop
    begin execute format('delete from %s where ctid in (select ctid from %1$s order by ctid offset 1 limit 2)', t.name);
    exception when others then null; end;
  end loop; end $$`;

/**
 * Changes content as a customer does in a day: files are removed, added, renamed and changed in content and mode, rows
 * are added and removed.
 */
async function change(siteId: string, version: number): Promise<void> {
  const { filesDir, databaseUrl } = await world.placeOf(siteId);
  const directory = realpathSync(filesDir);
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  for (const [at, name] of files.entries()) {
    const file = path.join(directory, name);
    // A link to a folder lists the files of the folder twice, so a file may have been removed already.
    const isFile = lstatSync(file, { throwIfNoEntry: false })?.isFile() === true;
    const turn = (at + version) % 40;
    if (isFile && turn === 0) rmSync(file);
    else if (isFile && turn === 10) writeFileSync(file, `${name} of ${version}`);
    else if (isFile && turn === 20) chmodSync(file, 0o600 + version);
    else if (isFile && turn === 30) renameSync(file, `${file}.${version}`);
  }
  await withClient(databaseUrl, async (client) => {
    await client.query(removeRows);
    await fillTables(client, 4);
  });
  await showVersion(siteId, version);
}

/** Sends a request and expects that its workflow succeeds without findings. */
async function finish(method: string, target: string, body: object = {}): Promise<void> {
  const accepted = await world.api.call(method, target, { body });
  expect(accepted).toMatchObject({ status: 202 });
  expectWhole(await ended(world, accepted.headers['location']));
}
const expectWhole = (view: object): void =>
  expect(view).toMatchObject({ status: 'succeeded', findings: [] } satisfies Partial<WorkflowView>);

if (missingForTrees() !== '') skipTests('sites of real programs', missingForTrees());
else if (here.length < pairs.length) skipTests('sites of real programs', `${missingTree}, and .ci/fetch-schemas`);
else
  it.each(pairs)(
    'a site with the schema of %s and the files of %s comes back whole each time',
    async (schema, tree) => {
      const seconds: Record<string, number> = {};
      const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
        const started = performance.now();
        const result = await work();
        seconds[what] = Math.round((performance.now() - started) / 100) / 10;
        return result;
      };
      const siteId = await makeSite(world);
      await timed('fill', () => fill(siteId, schema, tree));
      const first = await timed('read', () => contentOf(siteId));
      expect(first.page).toBe('200 file=1 row=1');

      const backupId = await timed('backup', () => makeBackup(world, siteId));
      await timed('change', () => change(siteId, 2));
      await timed('restore', () => finish('POST', `/v1/sites/${siteId}/backups/restore`, { backup_id: backupId }));
      expectSame(await contentOf(siteId), first);

      await change(siteId, 3);
      const second = await contentOf(siteId);
      expect(differences(first.tree, second.tree).length).toBeGreaterThan(10);
      expect(second.rows).not.toEqual(first.rows);
      await timed('deletion', () => finish('DELETE', `/v1/sites/${siteId}`));
      const deletionId = await deletionOf(world.api, siteId);
      await timed('return', () => finish('POST', `/v1/sites/deleted/${deletionId}/restore`));
      expectSame(await contentOf(siteId), second);

      await world.configure(siteId);
      await timed('full copy', () => world.copy(siteId, 'full'));
      await change(siteId, 4);
      const third = await contentOf(siteId);
      const incrementId = await timed('increment', () => world.copy(siteId, 'incremental'));
      await change(siteId, 5);
      await timed('restore of both', async () => expectWhole(await restoreCopy(world, siteId, incrementId)));
      expectSame(await contentOf(siteId), third);
      await finish('DELETE', `/v1/sites/${siteId}?last_backup=none`);
      process.stderr.write(`${schema}, ${tree}: ${first.tree.size} paths, seconds ${JSON.stringify(seconds)}\n`);
    },
  );
