import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { type OwnObjects, platformRole } from './copy/own-objects';
import { readRows, type Stage, UpgradeError } from './session';

/** The longest wait for transactions that began before DDL was refused. */
const waitSeconds = 60;

const message = 'the schema of this database cannot be changed while it is being upgraded to a newer version';
const hint = 'Try again when the upgrade has finished. Reading and writing rows goes on.';

/**
 * Returns the statements that refuse DDL. They use plain CREATE, which fails for an existing name. They name only
 * objects of pg_catalog and of the move, so that the superuser's session never uses an object of the customer. The
 * trigger's function runs with the rights of the role that changes the schema.
 */
function guardStatements({ guardSchema: schema, publisher }: OwnObjects): string[] {
  const trigger = (event: string): string[] => [
    `create event trigger ${schema}_${event} on ${event} execute function ${schema}.refuse_ddl()`,
    `alter event trigger ${schema}_${event} enable always`,
  ];
  return [
    `create schema ${schema}`,
    `create function ${schema}.refuse_ddl() returns pg_catalog.event_trigger language plpgsql
      set search_path = pg_catalog, pg_temp as $$
begin
  if session_user in (${[platformRole, publisher.role].map(pg.escapeLiteral).join(', ')}) then return; end if;
  if tg_event = 'sql_drop' then
    if not exists (select from pg_catalog.pg_event_trigger_dropped_objects() d
      where not d.is_temporary) then return; end if;
  -- temporary objects end with their session, and the contents of materialised views are made anew
  elsif not exists (select from pg_catalog.pg_event_trigger_ddl_commands() c
      where c.schema_name is distinct from 'pg_temp' and c.command_tag <> 'REFRESH MATERIALIZED VIEW') then return;
  end if;
  raise exception using errcode = '55006', message = '${message}', hint = '${hint}';
end $$`,
    ...trigger('ddl_command_end'),
    ...trigger('sql_drop'),
  ];
}

const boundarySql = 'select pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text as id';
const passedSql = 'select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text as id';
const idSchema = z.object({ id: z.coerce.bigint() });

/**
 * Refuses the customer's DDL from now on, and waits for earlier transactions, so that none of them still changes the
 * schema. The call can be repeated. Throws `busy` if a transaction runs for more than a minute.
 */
export async function installGuard(stage: Stage): Promise<void> {
  const guardian = await stage.guardian('old');
  const there = await guardian.query('select from pg_catalog.pg_namespace where nspname = $1', [stage.own.guardSchema]);
  if (there.rowCount === 0) await inTransaction(guardian, guardStatements(stage.own));
  const [boundary] = await readRows(guardian, idSchema, boundarySql);
  const untilMs = performance.now() + waitSeconds * 1000;
  for (;;) {
    const [passed] = await readRows(guardian, idSchema, passedSql);
    if (boundary && passed && passed.id >= boundary.id) return;
    if (performance.now() > untilMs)
      throw new UpgradeError('busy', `a transaction has been open for over ${waitSeconds} s`);
    await wait(20);
  }
}

async function inTransaction(client: pg.ClientBase, statements: readonly string[]): Promise<void> {
  await client.query('begin');
  try {
    for (const statement of statements) await client.query(statement);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Allows DDL again. It does nothing if DDL is not refused. */
export async function removeGuard(stage: Stage): Promise<void> {
  const { guardSchema: schema } = stage.own;
  await inTransaction(await stage.guardian('old'), [
    `drop event trigger if exists ${schema}_ddl_command_end`,
    `drop event trigger if exists ${schema}_sql_drop`,
    `drop function if exists ${schema}.refuse_ddl()`,
    `drop schema if exists ${schema}`,
  ]);
}
