import { existsSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createOwnedDatabase, type OwnedDatabase, runAsAdmin } from '../../test/databases';
import { loadDatabase } from '../load/load-database';
import { runSql } from '../testing/run-sql';
import { dumpDatabase } from './dump-database';
import { type Section, textSection } from './dump-format';

const canary = path.join(os.tmpdir(), `drydock-canary-${process.pid}`);
afterEach(() => rmSync(canary, { force: true }));

interface Forgery {
  schemaPre?: string;
  schemaPost?: string;
  sequences?: string;
  manifest?: string;
  extra?: Section;
}

const tables = { format_version: 1, server_version_num: 170000, encoding: 'UTF8', tables: [] };

/** Yields a dump that an attacker with the archive's key could have made. Every section is in its place. */
async function* forge(forgery: Forgery): AsyncGenerator<Section> {
  yield textSection('tables.json', async () => JSON.stringify(tables));
  yield textSection(
    'schema-pre.sql',
    async () => `CREATE TABLE public.innocent (a integer);\n${forgery.schemaPre ?? ''}`,
  );
  yield textSection('schema-post.sql', async () => forgery.schemaPost ?? '');
  yield textSection('sequences.json', async () => forgery.sequences ?? '[]');
  yield { path: 'large-objects.bin', content: textSection('', async () => '').content };
  yield textSection('manifest.json', async () => forgery.manifest ?? JSON.stringify({ ...tables, large_objects: 0 }));
  if (forgery.extra) yield forgery.extra;
}

const refusals: [string, string, string][] = [
  ['a shell command', `\\! touch ${canary}`, 'meta_command'],
  ['a shell command after a comment', `-- Name: x\n\\! touch ${canary}`, 'meta_command'],
  ['an include after a string', `SELECT 1 \\gexec\n`, 'meta_command'],
  ['COPY TO PROGRAM', `COPY public.innocent TO PROGRAM 'touch ${canary}';`, 'statement_refused'],
  ['COPY FROM PROGRAM', `copy public.innocent from program 'touch ${canary}';`, 'statement_refused'],
  ['COPY into a file', `COPY public.innocent TO '${canary}';`, 'statement_refused'],
  ['a DO block', `DO $$ BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch ${canary}'''; END $$;`, 'statement_refused'],
  ['an untrusted extension', 'CREATE EXTENSION IF NOT EXISTS dblink WITH SCHEMA public;', 'extension_untrusted'],
  ['an unknown extension', 'CREATE EXTENSION IF NOT EXISTS "no such" WITH SCHEMA public;', 'extension_untrusted'],
  ['an extension in another form', "CREATE EXTENSION dblink VERSION '1.2';", 'statement_refused'],
  ['a role', 'ALTER ROLE postgres PASSWORD $$x$$;', 'statement_refused'],
  ['a new role', 'CREATE ROLE evil SUPERUSER LOGIN;', 'statement_refused'],
  ['another owner', 'ALTER TABLE public.innocent OWNER TO postgres;', 'statement_refused'],
  ['a grant', 'GRANT postgres TO PUBLIC;', 'statement_refused'],
  ['SET ROLE', 'SET ROLE postgres;', 'statement_refused'],
  ['SET SESSION AUTHORIZATION', "SET SESSION AUTHORIZATION 'postgres';", 'statement_refused'],
  ['other quoting', 'SET standard_conforming_strings = off;', 'statement_refused'],
  ['another database', 'DROP DATABASE postgres;', 'statement_refused'],
  ['a setting of a database', 'ALTER DATABASE postgres SET search_path = evil;', 'statement_refused'],
  ['the server', "ALTER SYSTEM SET archive_command = 'x';", 'statement_refused'],
  ['a subscription', "CREATE SUBSCRIPTION s CONNECTION 'host=evil' PUBLICATION p;", 'statement_refused'],
  ['a language', 'CREATE LANGUAGE plperlu;', 'statement_refused'],
  ['an event trigger', 'CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f();', 'statement_refused'],
  ['a comment that hides', `/* /* */ */ COPY public.innocent TO PROGRAM 'touch ${canary}';`, 'statement_refused'],
  [
    'a statement behind a lying string',
    `COMMENT ON TABLE public.innocent IS 'a\\'; COPY public.innocent TO PROGRAM 'x';`,
    'statement_refused',
  ],
  ['an unfinished string', `COMMENT ON TABLE public.innocent IS 'a`, 'dump_malformed'],
  ['a half statement', 'CREATE TABLE public.x (a integer)', 'dump_malformed'],
];

describe.each(['schemaPre', 'schemaPost'] as const)('in %s', (place) => {
  // All cases use one target, because each leaves it empty.
  let target: OwnedDatabase;
  beforeAll(async () => {
    target = await createOwnedDatabase();
  });

  test.each(refusals)('%s is refused before anything ran', async (_what, sql, code) => {
    await expect(loadDatabase({ url: target.url, sections: forge({ [place]: sql }) })).rejects.toMatchObject({ code });
    expect(existsSync(canary)).toBe(false);
    expect(await runSql(target.url, "select 1 from pg_tables where schemaname = 'public'")).toEqual([]);
  });
});

test('what the check of a statement cannot see is stopped by the rights of the role', async () => {
  const target = await createOwnedDatabase();
  const hidden = `CREATE FUNCTION public.f() RETURNS integer LANGUAGE plpgsql AS $f$ begin copy (select 1) to program 'touch ${canary}'; return 1; end $f$;
    CREATE MATERIALIZED VIEW public.m AS SELECT public.f() AS x;`;
  await expect(loadDatabase({ url: target.url, sections: forge({ schemaPre: hidden }) })).rejects.toMatchObject({
    code: 'statement_failed',
  });
  const untrusted = "CREATE FUNCTION public.f(cstring) RETURNS integer LANGUAGE c AS 'libc.so.6', 'system';";
  const other = await createOwnedDatabase();
  await expect(loadDatabase({ url: other.url, sections: forge({ schemaPre: untrusted }) })).rejects.toMatchObject({
    code: 'statement_refused',
    object: 'function public.f',
  });
  expect(existsSync(canary)).toBe(false);
});

test('a superuser never loads, and a filled database is left alone', async () => {
  const target = await createOwnedDatabase();
  await expect(loadDatabase({ url: target.adminUrl, sections: forge({}) })).rejects.toMatchObject({
    code: 'loader_too_powerful',
  });
  await runAsAdmin(`grant pg_execute_server_program to ${target.name}`);
  await expect(loadDatabase({ url: target.url, sections: forge({}) })).rejects.toMatchObject({
    code: 'loader_too_powerful',
  });
  await runAsAdmin(`revoke pg_execute_server_program from ${target.name}`);
  await loadDatabase({ url: target.url, sections: forge({}) });
  await expect(loadDatabase({ url: target.url, sections: forge({}) })).rejects.toMatchObject({
    code: 'database_not_empty',
  });
});

test.each<[string, Forgery, string]>([
  [
    'names that leave the quotes',
    { sequences: '[{"schema":"public","name":"x\\"; drop","last_value":"1","is_called":true}]' },
    'statement_failed',
  ],
  [
    'a number that is none',
    { sequences: '[{"schema":"public","name":"x","last_value":"1; drop","is_called":true}]' },
    'dump_malformed',
  ],
  ['JSON with more', { sequences: '[{"evil":1}]' }, 'dump_malformed'],
  ['counts that lie', { manifest: JSON.stringify({ ...tables, large_objects: 7 }) }, 'counts_differ'],
  ['a section too many', { extra: textSection('data/9.copy', async () => '') }, 'dump_malformed'],
])('%s: refused', async (_what, forgery, code) => {
  const target = await createOwnedDatabase();
  await expect(loadDatabase({ url: target.url, sections: forge(forgery) })).rejects.toMatchObject({ code });
});

test.each<[string, (part: Buffer) => number, string]>([
  ['within a row', () => 1, 'data/0.copy into'],
  // A binary COPY has a header of 19 bytes, and each of these rows has 46.
  ['between two rows', (part) => 19 + 46 * Math.floor((part.length - 19) / 46), 'not queryable'],
])('data that ends %s fails the load and keeps nobody waiting', async (_where, endOf, reason) => {
  const source = await createOwnedDatabase();
  await runSql(source.url, 'create table t as select i, md5(i::text) from generate_series(1, 5000) i');
  const target = await createOwnedDatabase();
  async function* cut(sections: AsyncIterable<Section>): AsyncGenerator<Section> {
    for await (const section of sections)
      yield section.path.startsWith('data/') ? { path: section.path, content: half(section.content) } : section;
  }
  async function* half(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const part of content) {
      yield part.subarray(0, endOf(part));
      return;
    }
  }
  await expect(loadDatabase({ url: target.url, sections: cut(dumpDatabase(source)) })).rejects.toThrow(reason);
  if (reason !== 'not queryable')
    expect(await runSql(target.url, 'select count(*)::int as n from t')).toEqual([{ n: 0 }]);
});
