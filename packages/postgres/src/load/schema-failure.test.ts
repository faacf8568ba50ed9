import { until } from '@drydock/testing/wait';
import { createOwnedDatabase, runAsAdmin } from '../../test/databases';
import { dumpDatabase } from '../dump/dump-database';
import { dumpSchema } from '../dump/dump-schema';
import { runSql, withClient } from '../testing/run-sql';
import { loadDatabase } from './load-database';

async function drain(url: string): Promise<void> {
  for await (const { content } of dumpDatabase({ url })) for await (const part of content) void part;
}

test('a view that Postgres cannot write down ends a dump for good, with its name and the reason', async () => {
  const source = await createOwnedDatabase();
  // The session that creates the view has a larger stack than the session of the dump, which then cannot read the view.
  await withClient(source.adminUrl, async (client) => {
    await client.query("set max_stack_depth = '6MB'");
    await client.query('create schema reports; create view reports.plain as select 1 as one');
    await client.query(`create view reports.deep as select ${'1+'.repeat(12_000)}1 as sum`);
  });
  await expect(drain(source.readerUrl)).rejects.toMatchObject({
    code: 'dump_failed',
    isPermanent: true,
    object: 'view reports.deep',
    reason: 'stack depth limit exceeded',
  });
});

test('a function that is too large to be read ends a dump for good, with its name', async () => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create function small() returns int language sql as $$ select 1 $$');
  await runSql(
    source.url,
    `create function large(int) returns int language sql as $$ select 1 /* ${'x'.repeat(70_000_000)} */ $$`,
  );
  await expect(drain(source.readerUrl)).rejects.toMatchObject({
    code: 'message_too_large',
    isPermanent: true,
    object: 'function public.large(integer)',
    reason: expect.stringContaining('70000'),
  });
});

test('a dump whose session somebody ends fails, and may be tried again', async () => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create table t (a int)');
  await withClient(source.url, async (client) => {
    await client.query('begin; lock table t');
    const dumped = dumpSchema({ url: source.readerUrl, section: 'pre-data' });
    const outcome = dumped.then(String, (error: unknown) => error);
    const end =
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'";
    await until(async () => (await runAsAdmin(end, [source.name])).length > 0, { timeoutMs: 30_000 });
    expect(await outcome).toMatchObject({ code: 'dump_failed', isPermanent: false });
  });
});

test('a dump whose schema is not read in time fails with a code and a reason, and may be tried again', async () => {
  const source = await createOwnedDatabase();
  const late = async (): Promise<void> => {
    for await (const section of dumpDatabase({ url: source.readerUrl, schemaMs: 0 })) void section;
  };
  await expect(late()).rejects.toMatchObject({
    name: 'TransferError',
    code: 'dump_failed',
    isPermanent: false,
    reason: 'the schema was not read in 0 seconds',
  });
  const stop = new AbortController();
  stop.abort(new Error('stopped'));
  const stopped = dumpSchema({ url: source.readerUrl, section: 'pre-data', baseMs: 0, signal: stop.signal });
  await expect(stopped).rejects.toThrow('stopped');
});

test('a table that somebody drops while it is read is dumped whole, and dropped when the dump has ended', async () => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create table t (a int); insert into t select generate_series(1, 1000)');
  const target = await createOwnedDatabase();
  const isWaited =
    "select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock' and query = 'drop table t'";
  await withClient(source.url, async (client) => {
    let dropped: Promise<unknown> | undefined;
    async function* sections() {
      for await (const section of dumpDatabase({ url: source.readerUrl })) {
        dropped ??= client.query('drop table t');
        if (section.path === 'data/0.copy')
          await until(async () => (await runAsAdmin(isWaited, [source.name])).length > 0, { timeoutMs: 30_000 });
        yield section;
      }
    }
    const { tables } = await loadDatabase({ ...target.loader, sections: sections() });
    expect(tables).toMatchObject([{ name: 't', rows: 1000 }]);
    await dropped;
  });
});

test('a view whose table somebody waits to drop does not keep a dump that has locked the table: it is tried again within seconds', async () => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create table t (a int); create view v as select * from t');
  const isWaited =
    "select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock' and query = 'drop table t cascade'";
  await withClient(source.readerUrl, (reader) =>
    withClient(source.url, async (client) => {
      await reader.query('begin isolation level repeatable read read only');
      const { id } = (await reader.query<{ id: string }>('select pg_export_snapshot() as id')).rows[0] ?? { id: '' };
      await reader.query('lock table t in access share mode');
      const dropped = client.query('drop table t cascade');
      await until(async () => (await runAsAdmin(isWaited, [source.name])).length > 0);
      const dumped = dumpSchema({ url: source.readerUrl, snapshotId: id, areTablesLocked: true, section: 'pre-data' });
      await expect(dumped).rejects.toMatchObject({ code: 'dump_failed', isPermanent: false, cause: { code: '55P03' } });
      await reader.query('rollback');
      await dropped;
    }),
  );
});

test('tables and views that come and go while a dump begins do not fail it', async () => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create table stays (a int)');
  let isOver = false;
  let changes = 0;
  const changing = withClient(source.url, async (client) => {
    while (!isOver) {
      await client.query('create table passing (a int); create view seen as select * from passing');
      await client.query('drop table passing cascade');
      changes++;
    }
  });
  try {
    for (let dumps = 0; dumps < 2; dumps++) await drain(source.readerUrl);
  } finally {
    isOver = true;
    await changing;
  }
  expect(changes).toBeGreaterThan(0);
});
