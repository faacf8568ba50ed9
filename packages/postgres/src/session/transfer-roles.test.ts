import pg from 'pg';
import { createOwnedDatabase, runAsAdmin } from '../../test/databases';
import { runSql, withClient } from '../testing/run-sql';
import { readSharedCluster } from '../testing/test-cluster';
import { openSession } from './session';
import {
  dropTransferRole,
  loginUrl,
  makeLoader,
  makeReader,
  scramVerifier,
  setRolePassword,
  sweepTransferRoles,
  type TransferLogin,
} from './transfer-roles';

const { adminUrl } = readSharedCluster();
const asAdmin = <T>(work: (admin: pg.Client) => Promise<T>): Promise<T> => withClient(adminUrl, work);

/** Records every statement of all clients in this process. */
function recordStatements(): { texts: string[]; stop(): void } {
  const texts: string[] = [];
  const { query } = pg.Client.prototype;
  const spy = jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    texts.push(JSON.stringify(typeof args[0] === 'string' ? args[0] : Reflect.get(Object(args[0]), 'text')));
    return Reflect.apply(query, this, args);
  });
  return { texts, stop: () => spy.mockRestore() };
}

async function databaseWithLogins(): Promise<{
  name: string;
  url: string;
  adminUrl: string;
  reader: TransferLogin;
  loader: TransferLogin;
}> {
  const database = await createOwnedDatabase();
  await runAsAdmin(`revoke connect on database ${database.name} from public`);
  const [reader, loader] = await asAdmin(async (admin) => [
    await makeReader({ admin, database: database.name, tag: 'test' }),
    await makeLoader({ admin, database: database.name, owner: database.name, tag: 'test' }),
  ]);
  return { ...database, reader, loader };
}

test('a reader reads a table whose row security is forced, runs no policy, and changes nothing', async () => {
  const { name, url, reader } = await databaseWithLogins();
  await runSql(
    url,
    `create table ran (who text); create table secret (id int); insert into secret values (1), (2);
     create function spy() returns boolean language plpgsql volatile as $$ begin insert into public.ran values (current_user); return false; end $$;
     create policy none on secret using (spy()); alter table secret enable row level security; alter table secret force row level security`,
  );
  const { client, close } = await openSession(loginUrl(adminUrl, reader, name), { purpose: 'read' });
  expect((await client.query('select id from public.secret')).rowCount).toBe(2);
  await expect(client.query('insert into public.ran values (1)')).rejects.toThrow('permission denied');
  await expect(client.query(`set role ${name}`)).rejects.toThrow('permission denied');
  await close();
  expect(await runSql(url, 'select * from ran')).toEqual([]);
});

test("a reader enters its own database only, and a loader's RESET ROLE lands on a role that owns nothing", async () => {
  const { name, reader, loader } = await databaseWithLogins();
  const other = await databaseWithLogins();
  for (const login of [reader, loader])
    await expect(runSql(loginUrl(adminUrl, login, other.name), 'select 1')).rejects.toThrow('permission denied');
  const { client, close } = await openSession(loginUrl(adminUrl, loader, name), { purpose: 'load', role: name });
  await client.query('create table public.t (n int)');
  await client.query('reset role');
  // RESET ROLE only returns to the role of the startup packet. With SET ROLE none, hostile code can become the login.
  await client.query('set role none');
  const powers = `select r.rolsuper or r.rolbypassrls or r.rolcreaterole or r.rolcreatedb or r.rolreplication as powerful,
    pg_catalog.pg_has_role('pg_read_all_data', 'usage') as reads from pg_catalog.pg_roles r where r.rolname = current_user`;
  expect((await client.query(powers)).rows).toEqual([{ powerful: false, reads: false }]);
  await expect(client.query(`set role ${other.name}`)).rejects.toThrow('permission denied');
  await expect(client.query(`set role ${reader.role}`)).rejects.toThrow('permission denied');
  await close();
  expect(
    await runSql(
      loginUrl(adminUrl, loader, name),
      `select tableowner = $1 as owned from pg_tables where tablename = 't'`,
      [name],
    ),
  ).toEqual([{ owned: true }]);
});

test('no statement that makes a role or changes a password holds the password or its verifier', async () => {
  const recorded = recordStatements();
  const { loader, reader, name } = await databaseWithLogins().finally(() => undefined);
  const verifier = scramVerifier('a new one');
  await asAdmin((admin) => setRolePassword(admin, { verb: 'alter', role: loader.role, password: verifier }));
  recorded.stop();
  expect(recorded.texts.length).toBeGreaterThan(5);
  for (const secret of [loader.password, reader.password, 'SCRAM-SHA-256$4096', verifier])
    expect(recorded.texts.join('\n')).not.toContain(secret);
  expect(await runSql(loginUrl(adminUrl, { ...loader, password: 'a new one' }, name), 'select 1 as one')).toEqual([
    { one: 1 },
  ]);
  await expect(runSql(loginUrl(adminUrl, loader, name), 'select 1')).rejects.toThrow('password authentication failed');
});

test('an error while making a role tells its name and no verifier', async () => {
  const { name } = await createOwnedDatabase();
  const verifier = scramVerifier('x');
  const error: unknown = await asAdmin((admin) =>
    setRolePassword(admin, { verb: 'create', role: name, password: verifier }),
  ).catch((e) => e);
  expect(error).toMatchObject({ code: '42710' });
  expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('SCRAM');
});

test('leftover roles are dropped with their sessions; roles of others stay, and a role that owns an object is dropped after its database', async () => {
  const left = await databaseWithLogins();
  const customers = `rd_${'0'.repeat(24)}`;
  await runAsAdmin(`create role ${customers}; create role maker_${left.name} createrole; grant ${customers} to maker_${left.name} with admin true;
    comment on role ${customers} is 'mine'`);
  await asAdmin(async (admin) => {
    const mine = await makeLoader({ admin, database: left.name, owner: left.name, tag: 'mine' });
    const kept = await makeReader({ admin, database: left.name, tag: 'mine' });
    const { client } = await openSession(loginUrl(adminUrl, mine, left.name), { purpose: 'load', role: left.name });
    await client.query('create schema kept; grant create on schema kept to public');
    await client.query('set role none');
    await client.query('create table kept.by_loader (n int)');
    await sweepTransferRoles(admin, 'mine', new Set([kept.role]));
    await expect(client.query('select 1')).rejects.toBeInstanceOf(Error);
    await expect(runSql(loginUrl(adminUrl, mine, left.name), 'select 1')).rejects.toThrow('not permitted to log in');
    await admin.query(`drop database ${left.name} with (force)`);
    await sweepTransferRoles(admin, 'mine', new Set([kept.role]));
    const roles = await admin.query('select rolname from pg_roles where rolname = any ($1) order by 1', [
      [mine.role, kept.role, left.reader.role, customers],
    ]);
    expect(roles.rows.map((row: { rolname: string }) => row.rolname).sort()).toEqual(
      [kept.role, left.reader.role, customers].sort(),
    );
    for (const role of [kept.role, left.reader.role, left.loader.role]) await dropTransferRole(admin, role);
    await admin.query(`drop role ${customers}, maker_${left.name}`);
  });
});
