/** @processes */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  type Customer,
  createCustomer,
  cutOver,
  endMove,
  startTwoServers,
  type TwoServers,
} from '../../test/two-servers';
import { runSql, withClient } from '../testing/run-sql';
import { catchUp } from './bring-level';
import { askRows } from './check/ask-rows';
import { checkUpgrade } from './check/prechecks';
import { compareDatabases } from './copy/compare';
import { copyData } from './copy/copy-data';
import { copySchema } from './copy/copy-schema';
import { ownObjects } from './copy/own-objects';
import { readPositions } from './copy/unreplicated';
import { finishTarget } from './finish';
import { lockOut } from './lock-out';
import { Stage, withDatabase } from './session';

/*
 * A customer's database whose code tries to become more powerful, and records the role that runs it. The records are
 * rows of the table `seen`. Where the code may not write, there is no record.
 */

let servers: TwoServers;
beforeAll(async () => {
  servers = await startTwoServers();
});
afterAll(() => servers.stop());

/**
 * The statements of the attack. The function `spring` makes the customer a superuser if the acting role has that right,
 * and records the role in `seen`.
 */
const trap = `
create table seen (who text, session text, how text);
grant all on seen to public;
create function spring(how text) returns boolean language plpgsql volatile as $$
begin
  begin
    execute 'set role none';
  exception when others then null;
  end;
  if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) or (select rolsuper from pg_catalog.pg_roles where rolname = session_user) then
    execute format('alter role %I superuser', 'hostile');
  end if;
  begin
    insert into public.seen values (current_user, session_user, how);
  exception when others then null;
  end;
  return true;
end $$;
create function spring_text(how text) returns text language plpgsql immutable as $$ begin perform public.spring(how); return how; end $$`;

const schema = [
  // A cast to text, which a comparison by t::text would call.
  `create type loud as (v int); create function loud_text(loud) returns text language plpgsql as $$ begin perform public.spring('cast'); return 'x'; end $$;
   create cast (loud as text) with function loud_text(loud) as implicit; create table casts (id int primary key, v loud); insert into casts values (1, row(1))`,
  `create domain loud_text_domain as text check (spring('domain')); create table domains (id int primary key, v loud_text_domain); insert into domains values (1, 'a')`,
  // A CHECK of an unlogged table, whose rows are copied.
  `create unlogged table cached (id int primary key, v text check (spring('check of unlogged'))); insert into cached values (1, 'a')`,
  `create table checked (id int primary key, v text check (spring('check')), w text default spring_text('default'), x text generated always as (spring_text('generated')) stored);
   insert into checked (id, v) values (1, 'a')`,
  `create table indexed (id int primary key, v text); insert into indexed values (1, 'a'); create index on indexed (spring_text(v)); create statistics stats on (spring_text(v)), id from indexed`,
  `create table triggered (id int primary key); create function on_row() returns trigger language plpgsql as $$ begin perform public.spring('trigger'); return new; end $$;
   create trigger always before insert on triggered for each row execute function on_row(); alter table triggered enable always trigger always; insert into triggered values (1)`,
  `create table ruled (id int primary key); create rule loud as on insert to ruled do also select spring('rule'); insert into ruled values (1)`,
  `create table secret (id int primary key, v text); alter table secret enable row level security; alter table secret force row level security;
   create policy loud on secret using (spring('policy')) with check (spring('policy check')); insert into secret values (1, 'a')`,
  `create view looks as select spring('view') as v; create materialized view kept as select spring('materialised view') as v; create sequence counted`,
  `create function loud_sum(int, int) returns int language plpgsql as $$ begin perform public.spring('operator'); return $1; end $$; create operator ### (leftarg = int, rightarg = int, function = loud_sum);
   create table t (t text, s text); insert into t values ('a', 'b')`,
  `comment on table t is 'a''; alter role hostile superuser; --'; create publication mine for table t; alter default privileges grant select on tables to public;
   select lo_from_bytea(70001, 'a'); comment on large object 70001 is 'x''; alter role hostile superuser; --'`,
  // A list setting with odd names, and settings that change other sessions.
  `alter role hostile set search_path = 'a; alter role hostile superuser; --', "b""c"; alter role hostile set work_mem = '3MB';
   alter database hostile_shop set role = 'hostile'; alter database hostile_shop set search_path = 'public'; alter database hostile_shop set row_security = 'on';
   alter database hostile_shop set default_transaction_read_only = 'on'; alter database hostile_shop set statement_timeout = '1min'`,
];

/** Objects of the customer with names that could be mistaken for the platform's. */
const prepared = `create schema drydock_upgrade; create table drydock_upgrade.marker (id text primary key);
  create trigger loud before insert on drydock_upgrade.marker for each row execute function public.on_row(); create publication drydock_upgrade`;

const superusersSql = 'select rolname as name from pg_roles where rolsuper or rolreplication order by 1';
const seenSql = 'select distinct who from public.seen';

async function makeHostile(path: 'logical' | 'offline'): Promise<Customer> {
  const move = await createCustomer(servers, 'hostile_shop');
  await withClient(withDatabase(servers.old.adminUrl, 'postgres'), (client) =>
    client.query('alter role hostile_shop rename to hostile'),
  );
  await withClient(servers.old.adminUrl, (client) =>
    client.query("alter role hostile password 'the-owner-s-password'"),
  );
  const rename = (url: string): string => Object.assign(new URL(url), { username: 'hostile' }).href;
  const customer = { ...move, path, ownUrl: rename(move.ownUrl), ownTargetUrl: rename(move.ownTargetUrl) };
  await withClient(customer.ownUrl, async (client) => {
    for (const sql of [trap, ...schema, prepared, 'truncate seen']) await client.query(sql);
  });
  return customer;
}

async function removeHostile(): Promise<void> {
  for (const server of [servers.old, servers.target]) {
    await withClient(server.adminUrl, async (client) => {
      await client.query('drop database if exists hostile_shop with (force)');
      await client.query('drop role if exists hostile');
    });
  }
}

const adminOf = (side: 'old' | 'target'): string => withDatabase(servers[side].adminUrl, 'hostile_shop');

test.each(['logical', 'offline'] as const)(
  'no code of a customer’s database runs as anybody but that customer during an upgrade, and nobody becomes a superuser (%s)',
  async (path) => {
    const move = await makeHostile(path);
    const own = ownObjects(move.secret);
    const found = await checkUpgrade({
      url: move.oldUrl,
      databaseName: move.databaseName,
      toMajor: 18,
      extensionsOfTarget: [],
      freeBytes: 1e12,
    });
    expect(found.findings.filter(({ level }) => level === 'ERROR')).toEqual([]);
    const asked = await askRows({ url: move.oldUrl, databaseName: move.databaseName, toMajor: 18 });
    expect(asked.filter(({ level }) => level === 'ERROR')).toEqual([]);
    for (const stage of [copySchema, copyData, catchUp]) await stage(move);
    await cutOver(move);
    const options = '-c role=none -c search_path= -c default_transaction_read_only=off';
    // Only the table `seen` may differ, because the code on the target adds records.
    expect((await compareDatabases(move, null)).names.filter((name) => name !== '"public"."seen"')).toEqual([]);
    await finishTarget(move);
    for (const side of ['old', 'target'] as const) {
      const platform = side === 'old' ? [{ name: 'postgres' }, { name: own.replicator.role }] : [{ name: 'postgres' }];
      expect([side, await runSql(servers[side].adminUrl, superusersSql)]).toEqual([side, platform]);
      const seen = await runSql<{ who: string }>({ connectionString: adminOf(side), options }, seenSql);
      const strangers = seen.map(({ who }) => who).filter((who) => who !== 'hostile' && !/^ld_[0-9a-f]{24}$/.test(who));
      expect([side, strangers]).toEqual([side, []]);
    }
    const settings = `select setconfig from pg_db_role_setting s join pg_roles r on r.oid = s.setrole where rolname = 'hostile'`;
    expect(await runSql(servers.target.adminUrl, settings)).toEqual(await runSql(servers.old.adminUrl, settings));
    await endMove(move);
    await removeHostile();
  },
);

test('a sequence that becomes a view between listing and reading is refused, and its code does not run', async () => {
  const move = await makeHostile('logical');
  const stage = new Stage(move);
  const reader = await stage.reader('old');
  const options = '-c default_transaction_read_only=off';
  await runSql(
    { connectionString: move.ownUrl, options },
    "drop sequence public.counted; create view public.counted as select 1 as last_value, public.spring('swapped') as is_called",
  );
  await expect(readPositions(reader, ['"public"."counted"'])).rejects.toThrow('restricted');
  await stage.close();
  expect(
    await runSql({ connectionString: adminOf('old'), options: '-c role=none' }, 'select * from public.seen'),
  ).toEqual([]);
  await removeHostile();
});

test('an owner who grants access again while it is locked out does not stay: no session is left, or the lock-out fails', async () => {
  const move = await createCustomer(servers, 'stubborn');
  const open = 'grant connect on database stubborn to public, stubborn';
  let isOver = false;
  const insist = async (): Promise<void> => {
    while (!isOver) {
      await withClient(move.ownUrl, async (client) => {
        while (!isOver) await client.query(open);
      }).catch(() => undefined);
    }
  };
  const insisting = [insist(), insist()];
  try {
    await withClient(servers.old.adminUrl, async (server) => {
      const outcome = await lockOut(server, 'stubborn', []).then(
        () => 'locked',
        ({ code }: { code: string }) => code,
      );
      expect(['locked', 'not_sealed']).toContain(outcome);
      if (outcome === 'locked') {
        const sessions = "select from pg_stat_activity where usename = 'stubborn'";
        expect((await server.query(sessions)).rowCount).toBe(0);
        await expect(runSql(move.ownUrl, 'select 1')).rejects.toMatchObject({ code: '42501' });
      }
    });
  } finally {
    isOver = true;
    await Promise.all(insisting);
  }
});

test.each(['old', 'target'] as const)(
  'a lock-out waits for a login that began before it (%s server)',
  async (which) => {
    const { adminUrl } = servers[which];
    await runSql(adminUrl, "create role entering login password 'the-owner-s-password'");
    await runSql(adminUrl, 'create database entering owner entering template template0');
    const login = await beginLogin(adminUrl, 'entering');
    const order: string[] = [];
    await withClient(adminUrl, async (server) => {
      const locked = lockOut(server, 'entering', []).then(() => order.push('locked'));
      // The grants are gone once the lock-out has counted the sessions for the first time.
      const mayConnect = "select has_database_privilege('public', 'entering', 'connect') as may";
      while ((await runSql<{ may: boolean }>(adminUrl, mayConnect))[0]?.may !== false);
      login.once('close', () => order.push('login ended'));
      login.destroy();
      await locked;
    });
    expect(order).toEqual(['login ended', 'locked']);
  },
);

/** Begins a login and resolves once the server has asked for the password, which is never sent. */
async function beginLogin(adminUrl: string, role: string): Promise<Socket> {
  const { hostname, port } = new URL(adminUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const startup = Buffer.from(`\0\0\0\0\0\x03\0\0user\0${role}\0database\0${role}\0\0`, 'latin1');
  startup.writeInt32BE(startup.length);
  socket.write(startup);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(answer.toString('latin1', 0, 1)).toBe('R');
  return socket;
}
