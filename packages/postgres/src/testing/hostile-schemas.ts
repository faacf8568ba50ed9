import { SeededRandom } from '@drydock/testing/seeded-random';
import { items } from './hostile-items';
import { literal, quote, Room } from './hostile-room';

/*
 * Schemas of a hostile customer. They have code in many places where Postgres allows code, and names that look like
 * SQL. All code calls public.spring, the trap.
 */

export interface TrapTargets {
  owner: string;
  /** A file that only the tests' account can read. */
  file: string;
  /** A process that must not be stopped. */
  pid: number;
  /** The `application_name` of another user's session. */
  applicationName: string;
}

/**
 * The mark of the trap's lines in the server's log, which name the acting role. A rollback does not undo them, and a
 * read-only transaction can write them.
 */
export const trapMark = 'DRYDOCK-TRAP ';

/**
 * Returns the statements that create the trap. The trap records the acting role, before and after SET ROLE NONE, and
 * takes every right that the role may take.
 */
export function trapStatements({ owner, file, pid, applicationName }: TrapTargets): string[] {
  const attempts = [
    `execute ${literal(`alter role ${quote(owner)} superuser`)}`,
    `execute ${literal(`grant pg_read_all_data, pg_execute_server_program to ${quote(owner)}`)}`,
    `execute 'update pg_catalog.pg_authid set rolsuper = true'`,
    `execute 'alter system set log_statement = ''all'''`,
    `raise log 'LOOT %', pg_catalog.pg_read_file(${literal(file)})`,
    `raise log 'LOOT %', pg_catalog.convert_from(pg_catalog.lo_get(pg_catalog.lo_import(${literal(file)})), 'UTF8')`,
    `insert into public.loot values (pg_catalog.pg_read_file(${literal(file)}))`,
    `execute ${literal(`copy (select 1) to program 'kill -9 ${pid}; cat ${file} >&2'`)}`,
    `perform pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where application_name = ${literal(applicationName)}`,
    `execute 'create extension dblink'`,
    `execute 'create subscription steals connection ''dbname=canary'' publication p with (connect = false)'`,
  ];
  const attempt = (statement: string): string => `begin ${statement}; exception when others then null; end;`;
  return [
    'create table public.loot (text text)',
    `create function public.spring(how text) returns boolean language plpgsql volatile as $trap$
    declare acting text := current_user; fallen text;
    begin
      ${attempt('set local role none')}
      fallen := current_user;
      raise log '${trapMark}%', pg_catalog.json_build_object('how', how, 'acting', acting, 'fallen', fallen, 'session', session_user,
        'powerful', (select pg_catalog.bool_or(r.rolsuper or r.rolbypassrls or r.rolreplication or pg_catalog.pg_has_role(r.oid, 'pg_read_all_data', 'member'))
          from pg_catalog.pg_roles r where r.rolname in (acting, fallen, session_user)));
      ${attempts.map(attempt).join('\n      ')}
      ${attempt("execute pg_catalog.format('set local role %I', acting)")}
      return true;
    end $trap$`,
    ...['int', 'text', 'bigint'].map(
      (
        type,
      ) => `create function public.spring_${type}(how text, given ${type}) returns ${type} language plpgsql immutable
      as $trap$ begin perform public.spring(how); return given; end $trap$`,
    ),
    `create function public.spring_trigger() returns trigger language plpgsql as $trap$ begin perform public.spring('trigger ' || tg_name); return coalesce(new, old); end $trap$`,
  ];
}

/** Returns statements of an owner that change settings of the database and its roles, to influence our sessions. */
export function hostileSettings(
  random: SeededRandom,
  { owner, database }: { owner: string; database: string },
): string[] {
  const values = [
    `search_path = 'a; alter role ${owner} superuser; --', "b""c"`,
    'search_path = public, pg_catalog',
    `search_path = "${owner}', superuser"`,
    `role = ${literal(owner)}`,
    `session_authorization = ${literal(owner)}`,
    'row_security = on',
    'default_transaction_read_only = on',
    "default_transaction_isolation = 'serializable'",
    "statement_timeout = '1min'",
    "lock_timeout = '1s'",
    'standard_conforming_strings = off',
    'check_function_bodies = on',
    'quote_all_identifiers = on',
    "datestyle = 'SQL, DMY'",
    "bytea_output = 'escape'",
    'temp_tablespaces = "x; y", z',
    'session_replication_role = replica',
    "local_preload_libraries = 'evil'",
    'session_preload_libraries = "evil, more"',
    "default_table_access_method = 'evil'",
    'vacuum_cost_delay = 5',
    'jit = on',
    'event_triggers = on',
    "dynamic_library_path = '/tmp'",
  ];
  const places = [
    `role ${quote(owner)}`,
    `database ${quote(database)}`,
    `role ${quote(owner)} in database ${quote(database)}`,
  ];
  return random.pickSome(values, 6).map((value) => `alter ${random.pick(places)} set ${value}`);
}

export interface HostileSchema {
  items: string[];
  /** The owner runs these one by one, and Postgres may refuse some. */
  statements: string[];
}

export function hostileSchema(seed: number, number: number): HostileSchema {
  const random = new SeededRandom(seed * 7919 + number);
  const room = new Room(random, number);
  const names = random.pickSome(Object.keys(items), 4 + random.below(6));
  const statements = names.flatMap((name) => items[name]?.(room) ?? []);
  return { items: names, statements: [`create schema ${room.schema}`, ...statements] };
}
