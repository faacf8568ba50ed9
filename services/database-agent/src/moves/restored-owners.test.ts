/**
 * Checks owners and rights of objects after a restore by a database agent.
 *
 * @processes
 */
import { randomBytes, randomUUID } from 'node:crypto';
import path from 'node:path';
import { deriveKeys, encodeKeys, folderSink, folderSource } from '@drydock/archive';
import { runSql } from '@drydock/postgres/testing/run-sql';
import {
  claim,
  clearHost,
  createDatabase,
  customer,
  newDatabaseId,
  newHostFolder,
  spawnHost,
  type TestHost,
} from '../../test/host';

let host: TestHost;
beforeAll(async () => {
  host = await spawnHost(await newHostFolder());
});
afterAll(() => clearHost(host));

test('a SECURITY DEFINER function whose owner may not read a table may not read it after a restore either; the role, its comment and its settings stay', async () => {
  const databaseId = newDatabaseId();
  const database = await createDatabase(host.client, databaseId, 16);
  const url = customer(database);
  const run = (sql: string): Promise<unknown[]> => runSql(url, sql);
  await run("create table secrets (word text); insert into secrets values ('hidden')");
  await run('create role helper; grant create on schema public to helper');
  await run(`set role helper; set check_function_bodies = off;
    create function peek() returns text language sql security definer as 'select word from public.secrets'`);
  const archiveId = randomUUID();
  const folder = path.join(path.dirname(host.folder.databasesDir), archiveId);
  const common = {
    org_id: 'org',
    archive_id: archiveId,
    keys: encodeKeys(deriveKeys(randomBytes(32), randomBytes(16), archiveId)),
  };
  const spec = { ...common, sequence: 1, created_at: new Date().toISOString() };
  const kept = { jobId: randomUUID(), spec, served: { sources: [], sink: folderSink(folder) } };
  const { manifest_mac } = await host.client.dump(databaseId, kept, claim(1));
  await run(
    "comment on role helper is 'helps'; alter role helper connection limit 3 valid until '2040-01-02'; alter role helper set work_mem = '7MB'",
  );

  await expect(run('select peek()')).rejects.toThrow('permission denied for table secrets');
  await host.client.prepareTarget(databaseId, { upgrade_id: 'restore', to_major: 16, path: 'restore' }, claim(1));
  const source = { ...common, manifest_mac, source_id: databaseId, upgrade_id: 'restore' };
  const load = { jobId: randomUUID(), spec: source, served: { sources: [folderSource(folder)] } };
  expect(await host.client.loadDump(databaseId, load, claim(1))).toMatchObject({ rows: 1, findings: [] });
  await host.client.cutover(databaseId, 'restore', claim(1));

  await expect(run('select peek()')).rejects.toThrow('permission denied for table secrets');
  const properties = `select shobj_description(oid, 'pg_authid') as comment, rolconnlimit as connections, rolvaliduntil::date::text as until, rolconfig as settings,
    pg_has_role('helper', 'set') as is_member, (select rolcreaterole from pg_roles where rolname = current_user) as makes_roles from pg_roles where rolname = 'helper'`;
  const expected = {
    comment: 'helps',
    connections: 3,
    until: '2040-01-02',
    settings: ['work_mem=7MB'],
    is_member: true,
    makes_roles: true,
  };
  expect(await run(properties)).toEqual([expected]);
});
