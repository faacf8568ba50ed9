import { setTimeout as wait } from 'node:timers/promises';
import type pg from 'pg';
import { z } from 'zod';
import { ownSchema, platformRole } from './own-objects';
import { readRows } from './session';
import { UpgradeError } from './upgrade-error';

/** How long transactions that may have changed the schema before the guard stood are waited for. */
const waitSeconds = 60;

const message = 'the schema of this database cannot be changed while it is being upgraded to a newer version';
const hint = 'Try again when the upgrade has finished. Reading and writing rows goes on.';

const guardSql = `
create schema if not exists ${ownSchema};
create table if not exists ${ownSchema}.marker (id text primary key);
create table if not exists ${ownSchema}.replica_identity (relation oid primary key, identity "char" not null, index_name text);
create or replace function ${ownSchema}.refuse_ddl() returns event_trigger language plpgsql set search_path = '' as $$
begin
  if session_user = '${platformRole}' then return; end if;
  if tg_event = 'sql_drop' then
    if not exists (select from pg_catalog.pg_event_trigger_dropped_objects() d where not d.is_temporary) then return; end if;
  -- temporary objects end with their session, and the contents of materialised views are made anew
  elsif not exists (select from pg_catalog.pg_event_trigger_ddl_commands() c
      where c.schema_name is distinct from 'pg_temp' and c.command_tag <> 'REFRESH MATERIALIZED VIEW') then return;
  end if;
  raise exception using errcode = '55006', message = '${message}', hint = '${hint}';
end $$;
drop event trigger if exists drydock_upgrade_ddl;
drop event trigger if exists drydock_upgrade_drop;
create event trigger drydock_upgrade_ddl on ddl_command_end execute function ${ownSchema}.refuse_ddl();
create event trigger drydock_upgrade_drop on sql_drop execute function ${ownSchema}.refuse_ddl();
alter event trigger drydock_upgrade_ddl enable always;
alter event trigger drydock_upgrade_drop enable always`;

const boundarySql = 'select pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text as id';
const passedSql = 'select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text as id';
const idSchema = z.object({ id: z.coerce.bigint() });

/**
 * From here on the customer's DDL is refused, and what was changed before is committed: transactions that began earlier are waited for. Again is
 * harmless. Throws `busy` when such a transaction goes on for over a minute.
 */
export async function installGuard(old: pg.ClientBase): Promise<void> {
  await old.query(`begin; ${guardSql}; commit`);
  const [boundary] = await readRows(old, idSchema, boundarySql);
  const untilMs = performance.now() + waitSeconds * 1000;
  for (;;) {
    const [passed] = await readRows(old, idSchema, passedSql);
    if (boundary && passed && passed.id >= boundary.id) return;
    if (performance.now() > untilMs) throw new UpgradeError('busy', `a transaction has been open for over ${waitSeconds} s`);
    await wait(20);
  }
}

/** The customer may change the schema again; no trace is left. Not there is no error. */
export async function removeGuard(old: pg.ClientBase): Promise<void> {
  await old.query(`begin; drop event trigger if exists drydock_upgrade_ddl; drop event trigger if exists drydock_upgrade_drop;
    drop schema if exists ${ownSchema} cascade; commit`);
}
