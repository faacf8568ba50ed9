import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { createOwnedDatabase, runAsAdmin } from '../../test/databases';
import { demandingSchema } from '../../test/demanding-schema';
import { throughLateCounts } from '../../test/late-counts';
import { dumpDatabase } from '../dump/dump-database';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { runSql } from '../testing/run-sql';
import { readSectionsFolder, writeSectionsFolder } from '../testing/sections-folder';
import { loadDatabase } from './load-database';

const filled = async (rows: number) => {
  const database = await createOwnedDatabase();
  await runSql(database.url, demandingSchema(rows));
  return database;
};

test('a database that went through a folder has the same fingerprint, and goes on working', async () => {
  const source = await filled(2000);
  const target = await createOwnedDatabase();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-dump-'));
  const before = await fingerprintDatabase({ url: source.readerUrl });
  await writeSectionsFolder(folder, dumpDatabase({ url: source.readerUrl }));
  const manifest = await loadDatabase({ ...target.loader, sections: readSectionsFolder(folder) });
  await rm(folder, { recursive: true });

  expect(await fingerprintDatabase({ url: target.readerUrl })).toEqual(before);
  expect(manifest.large_objects).toBe(3);
  const formats = Object.fromEntries(manifest.tables.map((table) => [table.name, table.format]));
  expect(formats).toMatchObject({ customers: 'binary', docs: 'binary', orders: 'text' });
  expect(await runSql(target.url, "insert into customers (email, name) values ('a@b', 'x') returning id")).toEqual([
    { id: '2001' },
  ]);
  expect(await runSql(target.url, 'select n from mv_status')).toEqual([{ n: '2000' }]);
  expect(await runSql(target.url, "select relispopulated from pg_class where relname = 'mv_empty'")).toEqual([
    { relispopulated: false },
  ]);
  expect(await runSql(target.url, "select distinct tableowner from pg_tables where schemaname = 'public'")).toEqual([
    { tableowner: target.name },
  ]);
  await expect(runSql(target.url, 'insert into orders (customer_id, total) values (999999, 1)')).rejects.toThrow(
    'foreign key',
  );
});

test('20,000 rows go from one database straight into another, and the progress is reported', async () => {
  const source = await filled(20_000);
  const target = await createOwnedDatabase();
  const progress: number[] = [];
  const sections = dumpDatabase({ url: source.readerUrl });
  await loadDatabase({ ...target.loader, sections, onProgress: ({ tablesLoaded }) => progress.push(tablesLoaded) });
  expect(progress.length).toBeGreaterThan(8);
  expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
    (await fingerprintDatabase({ url: source.readerUrl })).digest,
  );
});

test('a dump has the right number of rows, also if Postgres reports the number a moment after the last row', async () => {
  const source = await filled(50);
  const target = await createOwnedDatabase();
  const late = await throughLateCounts(source.readerUrl);
  const { tables } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: late.url }) }).finally(
    () => void late.close(),
  );
  expect(tables.find(({ name }) => name === 'customers')).toMatchObject({ rows: 50 });
  expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
    (await fingerprintDatabase({ url: source.readerUrl })).digest,
  );
});

test('an owner can dump its own database with its large objects, and the dump is the same', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    "create table t (t int, u text); insert into t values (1, 'a'), (1, 'b'); select lo_from_bytea(1, decode(repeat('ab', 700000), 'hex'))",
  );
  await runSql(source.url, "select lo_put(1, 5000000, '\\x01')");
  const [byOwner, byReader] = [
    await fingerprintDatabase({ url: source.url }),
    await fingerprintDatabase({ url: source.readerUrl }),
  ];
  expect(byOwner).toEqual(byReader);
  const target = await createOwnedDatabase();
  await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  expect(await fingerprintDatabase({ url: target.readerUrl })).toEqual(byReader);
  // The fingerprint must cover the whole row, even if a column has the name of the query's alias.
  await runSql(source.url, "update t set u = 'c' where u = 'b'");
  expect((await fingerprintDatabase({ url: source.readerUrl })).tables).not.toEqual(byReader.tables);
});

test('a table whose row security is forced is dumped whole, and no policy runs', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create table ran (who text); create table secret (id int); insert into secret values (1), (2);
     create function spy() returns boolean language plpgsql as $$ begin insert into public.ran values (session_user); return false; end $$;
     create policy none on secret using (spy()); alter table secret enable row level security; alter table secret force row level security`,
  );
  const target = await createOwnedDatabase();
  const { tables } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  expect(new Map(tables.map(({ name, rows }) => [name, rows]))).toEqual(
    new Map([
      ['ran', 0],
      ['secret', 2],
    ]),
  );
  expect((await fingerprintDatabase({ url: target.readerUrl })).digest).toBe(
    (await fingerprintDatabase({ url: source.readerUrl })).digest,
  );
  expect(await runSql(source.adminUrl, 'select * from public.ran')).toEqual([]);
});

test('a sequence that becomes something else between listing and reading is refused, and its code does not run', async () => {
  for (const swapped of [
    'create view s as select spy() as last_value, true as is_called',
    "create table s as select 'x'::odd as last_value, true as is_called",
  ]) {
    const source = await createOwnedDatabase();
    await runSql(
      source.url,
      `create table ran (who text); create sequence s; create type odd as enum ('x');
       create function spy() returns bigint language plpgsql as $$ begin insert into public.ran values (session_user); return 1; end $$;
       create function tell(odd) returns text language plpgsql as $$ begin insert into public.ran values (session_user); return '1'; end $$;
       create cast (odd as text) with function tell(odd)`,
    );
    const read = async (): Promise<void> => {
      for await (const section of dumpDatabase({ url: source.readerUrl })) {
        if (section.path === 'sequences.json') await runSql(source.url, `drop sequence s; ${swapped}`);
        for await (const part of section.content) void part;
      }
    };
    await expect(read()).rejects.toBeInstanceOf(Error);
    expect(await runSql(source.url, 'select * from ran')).toEqual([]);
  }
});

test('writers go on during a dump, and the dump shows one moment only', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    'create table a (n bigint); create table b (n bigint); insert into a values (0); insert into b values (0)',
  );
  const target = await createOwnedDatabase();
  let isDone = false;
  let writes = 0;
  const writing = (async () => {
    while (!isDone) {
      writes++;
      await runSql(
        source.url,
        'begin; update a set n = n + 1; insert into a select n from a limit 1; update b set n = n + 1; insert into b select n from b limit 1; commit',
      );
    }
  })();
  /** Yields each section only after a write that began after the section. */
  async function* amongWrites() {
    for await (const section of dumpDatabase({ url: source.readerUrl })) {
      const before = writes;
      // The present write may have begun before the section, so the test waits for the write after it.
      await until(() => writes > before + 1, { what: 'a write during the dump' });
      yield section;
    }
  }
  try {
    await loadDatabase({ ...target.loader, sections: amongWrites() });
  } finally {
    isDone = true;
    await writing;
  }
  const counts = (table: string) => runSql(target.url, `select count(*), sum(n) from ${table}`);
  expect(await counts('a')).toEqual(await counts('b'));
});

test('a fingerprint sees one changed value, a moved sequence, a changed large object and a changed schema', async () => {
  const source = await filled(10);
  const digests = [(await fingerprintDatabase({ url: source.readerUrl })).digest];
  for (const change of [
    'update docs set f = 1 where f = 0.3::float8 + 0.00000000000000004',
    'update parent set a = 9 where ctid = (select min(ctid) from only parent)',
    "select nextval('untouched')",
    "select lo_put(4711, 699999, '\\x00')",
    'create index on parent (a)',
  ]) {
    await runSql(source.url, change);
    digests.push((await fingerprintDatabase({ url: source.readerUrl })).digest);
  }
  expect(new Set(digests).size).toBe(digests.length);
});

test('an abort ends a dump at once and leaves no session behind', async () => {
  const source = await filled(1000);
  const abort = new AbortController();
  const run = async () => {
    for await (const section of dumpDatabase({ url: source.readerUrl, signal: abort.signal })) {
      if (section.path === 'data/0.copy') abort.abort(new Error('enough'));
      for await (const part of section.content) void part;
    }
  };
  await expect(run()).rejects.toThrow(/enough|aborted|closed|terminated/i);
  const left = 'select count(*)::int as n from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()';
  await until(async () => (await runAsAdmin<{ n: number }>(left, [source.name]))[0]?.n === 0, {
    what: 'the end of all sessions',
  });
});

test('an owner without rights on its own tables and schema gets all of them back, and has no rights again', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create schema closed; create table closed.notes (id int primary key); create table closed.words (note int references closed.notes);
     insert into closed.notes values (1); insert into closed.words values (1); grant select on closed.notes to public;
     revoke all on closed.notes, closed.words from ${source.name}; revoke all on schema closed from ${source.name}`,
  );
  const target = await createOwnedDatabase();
  const { findings } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  expect(findings).toEqual([]);
  expect(await runSql(target.adminUrl, 'select count(*)::int as n from closed.words')).toEqual([{ n: 1 }]);
  await expect(runSql(target.url, 'select * from closed.notes')).rejects.toThrow('permission denied for schema closed');
  await runSql(target.adminUrl, `grant usage on schema closed to ${target.name}`);
  await expect(runSql(target.url, 'select * from closed.words')).rejects.toThrow('permission denied for table words');
  expect(await runSql(target.url, 'select id from closed.notes')).toEqual([{ id: 1 }]);
});
