import { z } from 'zod';
import { readChecks } from '../load/deferred-checks';
import { type CopiedTable, copyChangedUnlogged, copyUnlogged } from './copy/copy-data';
import { isOwnRoleSql, platformRole } from './copy/own-objects';
import { syncRoles } from './copy/roles';
import { copyLargeObjects, copySequences, sequenceNames } from './copy/unreplicated';
import { prepareLoaders, runPart } from './plan-store';
import { readHorizon, sendMarker, writeHorizon } from './replication';
import { type Move, readRows, type Stage, UpgradeError, withStage } from './session';
import { liftConnectionLimit, rehearseOpening } from './target-database';

const foundSchema = z.object({ what: z.string(), name: z.string() });

/**
 * Selects roles of customers that are superusers or may replicate, and parameters that a customer may set although only
 * a superuser should.
 */
const rolesSql = `select 'role' as what, r.rolname as name from pg_catalog.pg_roles r
    where r.rolname <> '${platformRole}' and r.rolname !~ '^pg_'
    and (r.rolsuper or (r.rolreplication and not ${isOwnRoleSql}))
  union all select 'parameter', p.parname from pg_catalog.pg_parameter_acl p
  cross join lateral pg_catalog.aclexplode(p.paracl) a
    left join pg_catalog.pg_roles r on r.oid = a.grantee where a.grantee = 0 or not (${isOwnRoleSql})
    and not r.rolsuper`;

/**
 * Selects objects that only a superuser can create: code with a superuser's rights, or code beyond the database's
 * limits. Of an extension's functions, only SECURITY DEFINER functions of a superuser count, unless they are in C.
 * Aggregates and constructors of range types are left out: a customer may create them, although their language is
 * `internal`.
 */
const objectsSql = `select 'event trigger' as what, evtname as name from pg_catalog.pg_event_trigger
  union all select 'function', p.oid::regprocedure::text from pg_catalog.pg_proc p
  join pg_catalog.pg_roles r on r.oid = p.proowner
    join pg_catalog.pg_language l on l.oid = p.prolang
    where p.oid >= 16384 and (p.prosecdef and (r.rolsuper or r.rolname ~ '^pg_') or p.proleakproof
        or not l.lanpltrusted and l.lanname <> 'sql' and p.prokind <> 'a')
      and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass
        and d.objid = p.oid and d.deptype = 'e'
        and d.refclassid = 'pg_catalog.pg_extension'::regclass)
      and not (l.lanname = 'internal' and exists (select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid
        and d.deptype = 'i' and d.refclassid = 'pg_catalog.pg_type'::regclass))
  union all select 'extension member', pg_catalog.pg_describe_object(d.classid, d.objid, 0) from pg_catalog.pg_depend d
    join pg_catalog.pg_proc p on d.classid = 'pg_catalog.pg_proc'::regclass and p.oid = d.objid
    join pg_catalog.pg_roles r on r.oid = p.proowner
    where d.deptype = 'e' and d.objid >= 16384 and p.prosecdef and r.rolsuper
    and p.prolang <> (select oid from pg_catalog.pg_language where lanname = 'c')`;

/**
 * Checks the target's rights and objects. Throws `rights_differ` if the target has a right or an object that no
 * customer could create. `syncRoles` has already made roles, memberships and settings equal to the old server's.
 */
async function checkRights(stage: Stage): Promise<void> {
  const server = await stage.server('target');
  const reader = await stage.reader('target');
  const [roles, objects] = await Promise.all([
    readRows(server, foundSchema, rolesSql),
    readRows(reader, foundSchema, objectsSql),
  ]);
  const found = [...roles, ...objects];
  if (found.length === 0) return;
  const names = found.slice(0, 10).map(({ what, name }) => `${what} ${name}`);
  throw new UpgradeError('rights_differ', `the new instance has what no customer can have made: ${names.join(', ')}`, {
    object: names[0],
  });
}

/** Once the target is less than this behind, {@link catchUp} sends no further marker. */
const nearMs = 1_000;
const markersMax = 60;
const markerLimitMs = 30_000;

/**
 * Stage: on the logical path, sends markers until one arrives within a second, but at most 60, and then copies changed
 * large objects again. On every path, writes the target's pages to disk, so that no checkpoint runs in the target's
 * first seconds. Throws `not_caught_up` if a marker takes more than 30 s.
 */
export async function catchUp(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    if (move.path === 'logical') {
      for (let sent = 0; sent < markersMax; sent++) if ((await sendMarker(stage, markerLimitMs)) < nearMs) break;
      await writeHorizon(
        stage,
        await copyLargeObjects(await stage.reader('old'), await stage.keeper(), await readHorizon(stage)),
      );
    }
    await (await stage.server('target')).query('checkpoint');
    move.progress?.(1);
  });
}

/** Values that are read before the pause, to make the pause shorter. The names stay valid, because DDL is refused. */
interface Prepared {
  sequences: readonly string[];
  unlogged: readonly CopiedTable[];
  horizon: string | null;
  checks: readonly ValidatedCheck[];
}

const warmMs = 5_000;
/**
 * The longest wait for the last changes during the pause. Before the pause, the target is usually less than a second
 * behind. After a longer wait the customer gets the old server back.
 */
const finalMs = 5_000;

async function syncRolesAndRights(stage: Stage): Promise<void> {
  const [old, target] = [await stage.server('old'), await stage.server('target')];
  const isUpgrade = stage.move.path !== 'restore';
  await syncRoles(old, target, stage.move.databaseName, { dropsGone: isUpgrade, withDatabase: isUpgrade });
  await checkRights(stage);
}

/**
 * Shortens the pause: reads values for it, and already copies unlogged tables and large objects. Throws UpgradeError
 * `not_caught_up` or `rights_differ` if the pause would be in vain.
 */
export async function prepareLevel(stage: Stage): Promise<Prepared> {
  const { path, databaseName } = stage.move;
  await liftConnectionLimit(await stage.server('old'), databaseName);
  await syncRolesAndRights(stage);
  if (path === 'restore') return { sequences: [], unlogged: [], horizon: null, checks: [] };
  await rehearseOpening(stage);
  const [old, keeper] = [await stage.reader('old'), await stage.keeper()];
  const prepared = {
    sequences: await sequenceNames(old),
    unlogged: path === 'logical' ? await copyUnlogged(stage) : [],
    horizon: await readHorizon(stage),
    checks: await readValidatedChecks(stage),
  };
  if (prepared.checks.length > 0) await stage.guardian('target');
  await prepareLoaders(stage, 'late');
  // The pause repeats the following copies. A session's first copy is slower, because it loads parts of the catalogue.
  await copySequences(old, keeper, prepared.sequences);
  if (path === 'offline') return prepared;
  const horizon = await copyLargeObjects(old, keeper, prepared.horizon);
  await sendMarker(stage, warmMs);
  return { ...prepared, horizon };
}

/**
 * Waits for the last changes and copies everything that replication does not transfer, while nobody writes on the old
 * server. Afterwards both servers have the same content, roles and rights. For a restore, only roles and rights are
 * transferred. No customer can enter the target yet. `onPart` is called after each part. Throws UpgradeError
 * `not_caught_up`, `rights_differ`.
 */
export async function bringLevel(
  stage: Stage,
  prepared: Prepared,
  onPart: (part: string) => void = () => undefined,
): Promise<void> {
  if (stage.move.path === 'restore') {
    await syncRolesAndRights(stage);
    onPart('roles');
    return;
  }
  const outcomes = await Promise.allSettled([copyLastRows(stage, prepared, onPart), syncRolesAndRights(stage)]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
  onPart('roles');
}

async function copyLastRows(stage: Stage, prepared: Prepared, onPart: (part: string) => void): Promise<void> {
  const { path } = stage.move;
  const [old, keeper] = [await stage.reader('old'), await stage.keeper()];
  if (path === 'logical') await sendMarker(stage, finalMs);
  onPart('marker');
  await copySequences(old, keeper, prepared.sequences);
  onPart('sequences');
  await copyChangedUnlogged(stage, prepared.unlogged);
  onPart('unlogged');
  if (path === 'logical') await copyLargeObjects(old, keeper, prepared.horizon);
  onPart('large_objects');
  await runPart(stage, 'late');
  await markValidated(stage, prepared.checks);
  onPart('late');
}

const constraintSchema = z.object({ schema: z.string(), owner: z.string(), name: z.string() });
type ValidatedCheck = z.infer<typeof constraintSchema>;

const places = `left join pg_catalog.pg_class c on c.oid = k.conrelid
  left join pg_catalog.pg_type t on t.oid = k.contypid
  join pg_catalog.pg_namespace n on n.oid = coalesce(c.relnamespace, t.typnamespace)`;
const validatedSql = `select n.nspname as schema, coalesce(c.relname, t.typname) as owner, k.conname as name
  from pg_catalog.pg_constraint k ${places} where k.contype = 'c' and k.convalidated and k.conname = any ($1::text[])`;
const markSql = `update pg_catalog.pg_constraint set convalidated = true where contype = 'c' and not convalidated
  and oid in (
  select k.oid from unnest($1::text[], $2::text[], $3::text[]) w (schema, owner, name)
  join pg_catalog.pg_constraint k on k.conname = w.name ${places} where n.nspname = w.schema
    and coalesce(c.relname, t.typname) = w.owner)`;

/**
 * Reads the validated CHECKs of the old database that call functions of the customer, and the CHECKs of the same names,
 * such as those of inheriting tables.
 */
async function readValidatedChecks(stage: Stage): Promise<ValidatedCheck[]> {
  const reader = await stage.reader('old');
  const names = (await readChecks(reader)).map(({ name }) => name);
  return names.length === 0 ? [] : readRows(reader, constraintSchema, validatedSql, [names]);
}

/**
 * Marks the CHECKs as validated without checking the rows, which are the same as on the old server. A check would call
 * the customer's functions for each row during the pause, and these functions may return another result today.
 */
async function markValidated(stage: Stage, checks: readonly ValidatedCheck[]): Promise<void> {
  if (checks.length === 0) return;
  const columns = [
    checks.map(({ schema }) => schema),
    checks.map(({ owner }) => owner),
    checks.map(({ name }) => name),
  ];
  await (await stage.guardian('target')).query(markSql, columns);
}
