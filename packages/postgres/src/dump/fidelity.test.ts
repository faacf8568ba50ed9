import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { createOwnedDatabase, dumpedStatements, type OwnedDatabase, runAsAdmin } from '../../test/databases';
import { loadDatabase } from '../load/load-database';
import { runSql } from '../testing/run-sql';
import { diskFullMark } from './database-properties';
import { dumpDatabase } from './dump-database';
import { type Section, sectionPaths } from './dump-format';

async function throughDump(
  source: OwnedDatabase,
): Promise<{ target: OwnedDatabase; findings: { kind: string; object: string; reason: string }[] }> {
  const target = await createOwnedDatabase();
  const { findings } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
  return { target, findings };
}

test('a restore returns the privileges, publications, comments and settings that were there', async () => {
  const source = await createOwnedDatabase();
  const { name } = source;
  const other = randomBytes(6).toString('hex');
  const [reads, writes] = [`"reads ""${other}"`, `writes_${other}`];
  await runAsAdmin(`create role ${reads}; create role ${writes}`);
  await runSql(
    source.url,
    `create schema hidden; create table hidden.t (a int primary key, b int); create sequence hidden.s; create type hidden.kind as enum ('x');
     create function hidden.f() returns int language sql as 'select 1'; create view hidden.v as select 1 as one;
     revoke all on schema public from public; revoke execute on function hidden.f() from public; revoke usage on type hidden.kind from public;
     grant usage on schema hidden to ${reads} with grant option; grant select (a), update (b) on hidden.t to ${reads}; grant all on hidden.v to ${writes};
     grant usage on sequence hidden.s to ${writes}; grant execute on function hidden.f() to ${reads}; revoke insert on hidden.t from ${name};
     alter default privileges in schema hidden grant select on tables to ${reads}; alter default privileges revoke execute on functions from public;
     create table hidden.mine (id int); alter table hidden.mine enable row level security;
     create policy p on hidden.mine for select to ${name} using (true); create policy q on hidden.mine to ${reads} using (false);
     create publication p for table hidden.t (a) where (a > 1) with (publish = 'insert'); comment on publication p is 'it''s';
     select lo_from_bytea(77, 'x'), lo_from_bytea(78, ''); grant select on large object 77 to ${reads}; comment on large object 78 is 'seventy-eight';
     comment on database ${name} is 'a "database"'; alter database ${name} set search_path = "odd, Name", public; alter database ${name} set work_mem = '5MB'; alter database ${name} set client_encoding = 'LATIN1';
     alter role ${name} in database ${name} set timezone = 'Europe/Zurich'; grant connect on database ${name} to ${reads}; alter database ${name} set datestyle = 'ISO, DMY'`,
  );
  const before = await dumpedStatements(source);
  const { target, findings } = await throughDump(source);
  expect(findings).toEqual([]);
  expect(await dumpedStatements(target)).toEqual(before);
  const properties = `select shobj_description(d.oid, 'pg_database') as comment, replace(d.datacl::text, d.datname, 'OWNER') ~ 'reads' as granted,
      (select array_agg(replace(s.setconfig::text, d.datname, 'OWNER') order by s.setrole) from pg_db_role_setting s where s.setdatabase = d.oid) as settings,
      (select array_agg(replace(m.lomacl::text, d.datname, 'OWNER') order by m.oid) from pg_largeobject_metadata m) as acls,
      obj_description(78, 'pg_largeobject') as object from pg_database d where d.datname = current_database()`;
  expect(await runSql(target.adminUrl, properties)).toEqual(await runSql(source.adminUrl, properties));
  expect(await runSql(target.url, 'select 1 as works from hidden.v')).toEqual([{ works: 1 }]);
});

/** Adds settings to a dump, as a dump of an earlier version has them. */
async function* withSettings(sections: AsyncIterable<Section>, settings: object[]): AsyncGenerator<Section> {
  for await (const section of sections) {
    if (section.path !== sectionPaths.properties) {
      yield section;
      continue;
    }
    const parts: Buffer[] = [];
    for await (const part of section.content) parts.push(part);
    const properties = JSON.parse(Buffer.concat(parts).toString());
    const text = JSON.stringify({ ...properties, settings: [...properties.settings, ...settings] });
    yield { path: section.path, content: Readable.from([Buffer.from(text)]) };
  }
}

test('a restore leaves out the read-only default of a full disk, also from a dump of an earlier version, and keeps the settings of the customer', async () => {
  const source = await createOwnedDatabase();
  const { name } = source;
  const alter = `alter role ${name} in database ${name}`;
  await runSql(source.url, `create table t (n int); ${alter} set work_mem = '5MB'`);
  const limit = ['default_transaction_read_only', diskFullMark];
  for (const key of limit) await runAsAdmin(`${alter} set ${key} = on`);
  const { target, findings } = await throughDump(source);
  for (const key of limit) await runAsAdmin(`${alter} reset ${key}`);
  const earlier = await createOwnedDatabase();
  const sections = withSettings(
    dumpDatabase({ url: source.readerUrl }),
    limit.map((key) => ({ is_owners: true, key, value: 'on' })),
  );
  const ofEarlier = await loadDatabase({ ...earlier.loader, sections });
  expect([findings, ofEarlier.findings]).toEqual([[], []]);
  const settingsSql = `select setconfig as settings from pg_db_role_setting s
    join pg_database d on d.oid = s.setdatabase and d.datname = current_database()`;
  for (const restored of [target, earlier]) {
    expect(await runSql(restored.url, settingsSql)).toEqual([{ settings: ['work_mem=5MB'] }]);
    await runSql(restored.url, 'insert into t values (1)');
  }
  // Without the mark, the read-only default is the customer's own.
  await runAsAdmin(`${alter} set default_transaction_read_only = on`);
  const { target: closed } = await throughDump(source);
  expect(await runSql(closed.url, 'show default_transaction_read_only')).toEqual([
    { default_transaction_read_only: 'on' },
  ]);
});

test('a grant to a missing role gives nothing and is a finding; what was revoked from PUBLIC stays revoked', async () => {
  const source = await createOwnedDatabase();
  await runAsAdmin(`create role gone_${source.name}`);
  await runSql(
    source.url,
    `create table t (a int); grant select on t to gone_${source.name}; alter table t enable row level security; create policy p on t to gone_${source.name} using (true);
     create function f() returns int language sql as 'select 1'; revoke execute on function f() from public`,
  );
  const sections: { path: string; parts: Buffer[] }[] = [];
  for await (const { path, content } of dumpDatabase({ url: source.readerUrl })) {
    const parts: Buffer[] = [];
    for await (const part of content) parts.push(part);
    sections.push({ path, parts });
  }
  await runAsAdmin(`drop database ${source.name} with (force)`);
  await runAsAdmin(`drop role gone_${source.name}`);
  async function* again() {
    for (const { path, parts } of sections)
      yield {
        path,
        content: (async function* () {
          yield* parts;
        })(),
      };
  }
  const target = await createOwnedDatabase();
  const { findings } = await loadDatabase({ ...target.loader, sections: again() });
  expect(findings.map(({ kind }) => kind)).toEqual(['not_restored', 'not_restored']);
  expect(
    await runSql(target.adminUrl, "select has_function_privilege('public', 'public.f()', 'execute') as may"),
  ).toEqual([{ may: false }]);
});

test('a CHECK whose function reads a table that is loaded later is restored, for tables and for domains', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create table zones (name text); insert into zones values ('a'); create table known (n int); insert into known values (1);
     create function is_zone(text) returns boolean language sql as 'select exists (select from public.zones where name = $1)';
     create function is_known(int) returns boolean language plpgsql as $$ begin return exists (select from public.known where n = $1); end $$;
     create domain known_number as int constraint is_there check (is_known(value)); comment on constraint is_there on domain known_number is 'there';
     create table records (zone text constraint in_zone check (is_zone(zone)), n known_number, filler text);
     insert into records select 'a', 1, repeat('x', 1000) from generate_series(1, 500)`,
  );
  const before = await dumpedStatements(source);
  const { target, findings } = await throughDump(source);
  expect(findings).toEqual([]);
  expect(await dumpedStatements(target)).toEqual(before);
  await expect(runSql(target.url, "insert into records values ('b', 1)")).rejects.toThrow('in_zone');
  expect(await runSql(target.url, 'select count(*)::int as n from records')).toEqual([{ n: 500 }]);
  // A constraint that its rows already violate is restored and reported.
  await runSql(source.url, "update zones set name = 'other'");
  const told = await throughDump(source);
  expect(told.findings).toMatchObject([
    { kind: 'not_validated', object: 'constraint "in_zone" of table "public"."records"' },
  ]);
  await expect(runSql(told.target.url, "insert into records values ('b', 1)")).rejects.toThrow('in_zone');
});

test('an index on a function that relies on the search path is restored, and the function stays as it was', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create extension unaccent; create table t (a text); insert into t values ('é');
     create function plain(text) returns text language sql immutable set search_path = public as 'select unaccent($1)'; create index i on t (plain(a));
     alter function plain(text) reset search_path`,
  );
  const before = await dumpedStatements(source);
  const { target, findings } = await throughDump(source);
  expect(findings).toEqual([]);
  expect(await dumpedStatements(target)).toEqual(before);
});

test('what cannot be restored is a permanent error that names the object', async () => {
  const source = await createOwnedDatabase();
  await runSql(
    source.url,
    `create table t (a int); insert into t values (1); create function f(int) returns int language plpgsql immutable as 'begin return $1; end'; create index broken on t (f(a));
     create or replace function f(int) returns int language plpgsql immutable as $$ begin raise 'no'; end $$`,
  );
  await expect(throughDump(source)).rejects.toMatchObject({
    code: 'statement_failed',
    object: 'index broken of public.t',
    reason: 'no',
    isPermanent: true,
  });
});
