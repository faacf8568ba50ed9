/**
 * Content that depends on settings of its database comes back as it was.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import { createOwnedDatabase } from '../../test/databases';
import { createCustomer, cutOver, endMove, startTwoServers } from '../../test/two-servers';
import { dumpDatabase } from '../dump/dump-database';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { loadDatabase } from '../load/load-database';
import { runSql } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { askRows } from './check/ask-rows';
import { trySchema } from './check/try-schema';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';

/**
 * Returns statements for functions that claim to be immutable but depend on a setting. A column, an index and a CHECK
 * of `rowsSql` call them.
 */
const contentOf = (database: string): string[] => [
  'create text search configuration public.words (copy = pg_catalog.german)',
  `create function words(text) returns tsvector language sql immutable as $$ select to_tsvector($1) $$;
   create function rate() returns int language sql immutable as $$ select coalesce(current_setting('shop.rate', true)::int, 3) $$`,
  `alter database ${database} set default_text_search_config = 'public.words'`,
];
const rowsSql = `create table t (n int primary key check (n < 100 * public.rate()), body text, total int generated always as (n * public.rate()) stored,
    search tsvector generated always as (public.words(body)) stored);
  create index by_rate on t ((n + public.rate())); insert into t (n, body) values (1, 'Häuser'), (250, 'gegangen')`;

test('an upgrade computes values under the settings of the database, and the target ends with the present settings', async () => {
  const servers = await startTwoServers();
  try {
    const move = await createCustomer(servers, 'set_shop', ...contentOf('set_shop'));
    // Only a superuser can store a parameter that no extension declares.
    await runSql(
      servers.old.adminUrl,
      "alter database set_shop set shop.rate = '4'; alter database set_shop set shop.gone = 'x'",
    );
    await runSql(move.ownUrl, rowsSql);
    expect(await askRows({ url: move.oldUrl, databaseName: 'set_shop', toMajor: 18 })).toEqual([]);
    expect(await trySchema({ ...move, secret: randomBytes(32).toString('hex'), fence: '0' })).toEqual([]);
    for (const stage of [copySchema, copyData]) await stage(move);
    await runSql(move.ownUrl, "insert into t (n, body) values (399, 'Bäume')");
    await catchUp(move);
    await runSql(
      servers.old.adminUrl,
      "alter database set_shop reset shop.gone; alter database set_shop set shop.name = 'a'",
    );
    await cutOver(move);
    expect(await compareDatabases(move, null)).toMatchObject({ outcome: 'equal', names: [], recomputed: [] });
    const settingsSql =
      'select setconfig as settings from pg_db_role_setting where setdatabase = (select oid from pg_database where datname = current_database())';
    const expected = [
      { settings: expect.arrayContaining(['shop.rate=4', 'default_text_search_config=public.words', 'shop.name=a']) },
    ];
    expect(await runSql(move.ownTargetUrl, settingsSql)).toEqual(expected);
    await endMove(move);
  } finally {
    await servers.stop();
  }
});

test('an upgrade of a full database keeps the settings of the customer, and leaves the read-only setting of its old server behind', async () => {
  const servers = await startTwoServers();
  try {
    const move = await createCustomer(servers, 'full_shop', 'create table t (n int)');
    await runSql(move.ownUrl, "alter database full_shop set work_mem = '8MB'");
    for (const stage of [copySchema, copyData]) await stage(move);
    await runSql(servers.old.adminUrl, 'alter role all set default_transaction_read_only = on');
    await cutOver(move);
    const ofAllRoles = 'select unnest(setconfig) as setting from pg_db_role_setting where setrole = 0';
    expect(await runSql(servers.target.adminUrl, ofAllRoles)).toEqual([{ setting: 'work_mem=8MB' }]);
    await runSql(move.ownTargetUrl, 'insert into t values (1)');
    await endMove(move);
  } finally {
    await servers.stop();
  }
});

test('a load computes values under the settings of the dumped database, and the new database has these settings', async () => {
  const [source, target] = [await createOwnedDatabase(), await createOwnedDatabase()];
  for (const statement of contentOf(source.name)) await runSql(source.url, statement);
  await runSql(source.url, rowsSql);
  const { findings } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  expect(findings).toEqual([]);
  const [before, after] = [
    await fingerprintDatabase({ url: source.readerUrl }),
    await fingerprintDatabase({ url: target.readerUrl }),
  ];
  expect(after.tables).toEqual(before.tables);
  expect(await runSql(target.url, 'select search::text from t order by n')).toEqual([
    { search: "'haus':1" },
    { search: "'gegang':1" },
  ]);
});
