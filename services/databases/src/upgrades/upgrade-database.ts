import type {
  preflightDatabaseUpgrade,
  upgradeDatabase as upgradeDatabaseEndpoint,
} from '@drydock/contracts/databases/database-upgrades';
import type { DatabaseCatalogue } from '@drydock/contracts/databases/databases';
import { type Major, majorOf } from '@drydock/contracts/databases/major';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowedOn, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import { findNewestBackup, insertBackup } from '../backups/backup.store';
import type { DatabaseBackup } from '../backups/backup.types';
import { majorsFor, versionsOf } from '../catalogue/catalogue';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { compareVersions, isVersion, refuseUnavailable } from '../databases/database.rules';
import { changeStatus } from '../databases/database.store';
import { databasePath, databaseResourceKey, type ManagedDatabase, onDatabase } from '../databases/database.types';
import { holdDatabase, readDatabase, viewDatabase } from '../databases/database-record';
import { DatabaseProviderError, type UpgradePlan } from '../providers/database-provider';
import { upgradeDatabaseWorkflow } from './upgrade-database.workflow';

export interface UpgradeWorld {
  managed: Pick<ManagedDatabase, 'engineVersion' | 'status' | 'lastBackupAt'>;
  unfinished: UnfinishedWorkflow | null;
  /** The versions of the database's engine, from the catalogue. */
  versions: readonly DatabaseCatalogue['engines'][number]['versions'][number][];
}

/**
 * The first reason against an upgrade, in the order of docs/spec/decisions.md; null if there is none. The target must
 * be written as in the catalogue: "16.0" is not "16".
 */
export function refuseUpgrade({ managed, unfinished, versions }: UpgradeWorld, target: string): Refusal | null {
  const held = refusalByWorkflow(unfinished);
  if (held !== null) return held;
  const wanted = isVersion(target) ? versions.find(({ version }) => version === target) : undefined;
  if (wanted === undefined) return { code: 'version_not_offered' };
  const current = versions.find(({ version }) => version === managed.engineVersion);
  if (current !== undefined && current.flavour !== wanted.flavour) return { code: 'engine_differs' };
  if (compareVersions(target, managed.engineVersion) <= 0) return { code: 'version_not_newer' };
  if (current !== undefined && !current.upgradable_to.includes(target)) return { code: 'version_not_offered' };
  if (managed.lastBackupAt === null) return { code: 'never_backed_up' };
  return refuseUnavailable(managed);
}

interface UpgradeFacts {
  managed: ManagedDatabase;
  target: string;
  /**
   * The plan of the upgrade. Null if the upgrade is refused, except for `never_backed_up`, or if the database has no
   * instance.
   */
  plan: UpgradePlan | null;
  /** The newest completed backup. */
  backup: DatabaseBackup | null;
  now: Date;
}

/** The preflight in the form of the API. `undo` is false, because nothing undoes an upgrade after its cutover. */
function viewPreflight({ managed, target, plan, backup, now }: UpgradeFacts, refusal: Preflight['refusal']): Preflight {
  const takenAt = backup?.completedAt ?? null;
  return {
    would: sentenceOf(managed, target, plan),
    resource: databasePath(managed.id),
    point:
      backup === null || takenAt === null
        ? null
        : {
            id: backup.id,
            taken_at: takenAt.toISOString(),
            age_seconds: Math.max(0, Math.floor((now.getTime() - takenAt.getTime()) / 1_000)),
          },
    space: plan === null ? null : { needed_bytes: plan.neededBytes, free_bytes: plan.freeBytes },
    refusal,
    findings: plan === null ? [] : plan.findings.map(({ level, code, detail }) => ({ level, code, detail })),
    undo: false,
  };
}

function sentenceOf({ label, engineVersion }: ManagedDatabase, target: string, plan: UpgradePlan | null): string {
  const move = `${label} would be moved from ${engineVersion} to ${target} behind its address`;
  if (plan === null) return `${move}.`;
  return plan.path === 'logical'
    ? `${move}, with a fresh backup first; clients write on, and pause for less than a second at the end.`
    : `${move}, with a fresh backup first; clients wait for about ${plan.pauseSeconds} s while the data is copied.`;
}

/**
 * The preflight of an upgrade applies the rules of the upgrade and asks the instance for findings. It changes nothing
 * in the database.
 */
export const preflightUpgrade = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, body, requestId } = request;
      const { pool } = context.database;
      const managed = await readDatabase(context, request);
      const unfinished = await findUnfinished(context.database.sql(), databaseResourceKey(managed.id));
      const majors = await majorsFor(context, { engine: managed.engine, engine_version: body.engine_version });
      const world = { managed, unfinished, versions: versionsOf(managed.engine, majors) };
      const refusal = refuseUpgrade(world, body.engine_version);
      const isTarget = refusal === null || refusal.code === 'never_backed_up';
      const plan = isTarget ? await planOf(context, managed, majorOf(body.engine_version)) : null;
      const backup = await findNewestBackup(pool, managed.id);
      const facts = { managed, target: body.engine_version, plan, backup, now };
      return { status: 200, body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId)) };
    },
  }) satisfies ReadHandlers<typeof preflightDatabaseUpgrade>;

/** Reads the plan of an upgrade. Null if the database has no instance. */
async function planOf(
  { provider }: HandlerContext,
  { id, orgId, mode }: ManagedDatabase,
  toMajor: Major,
): Promise<UpgradePlan | null> {
  try {
    return await provider.planUpgrade({ databaseId: id, orgId, mode }, toMajor);
  } catch (error) {
    if (error instanceof DatabaseProviderError && error.refusal === 'unknown_database') return null;
    throw problem('dependency_unavailable', {
      extra: { dependency: 'database-host' },
      retryAfterSeconds: 30,
      cause: error,
    });
  }
}

/** Accepts an upgrade of the database to a newer major. {@link upgradeDatabaseWorkflow} carries it out. */
export const upgradeDatabase = (context: HandlerContext) =>
  ({
    // The database's engine is known only once its row is locked, so the version decides. With `mysql` here, the agent
    // is asked for versions of MySQL and MariaDB, and not for versions of Postgres, whose programs every agent has.
    preload: ({ body }) => majorsFor(context, { engine: 'mysql', engine_version: body.engine_version }),
    execute: async (tx: Tx, request, majors) => {
      const { body: asked, now } = request;
      const managed = await holdDatabase(tx, request);
      const world = { managed, versions: versionsOf(managed.engine, majors) };
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseUpgrade({ ...world, unfinished }, asked.engine_version);
      await assertAllowedOn(context.database.sql(tx), databaseResourceKey(managed.id), refuse);
      const [backupId, newBackupId] = [uuidv7(), uuidv7()];
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(managed.id),
        definition: upgradeDatabaseWorkflow,
        input: { toMajor: majorOf(asked.engine_version), fromVersion: managed.engineVersion, backupId, newBackupId },
        action: 'database.upgrade',
      });
      await insertBackup(tx, {
        id: backupId,
        databaseId: managed.id,
        kind: 'upgrade',
        engineVersion: managed.engineVersion,
        createdAt: now,
      });
      await changeStatus(tx, managed.id, 'provisioning');
      const body = viewDatabase({ ...managed, status: 'provisioning' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof upgradeDatabaseEndpoint, Tx, readonly Major[]>;
