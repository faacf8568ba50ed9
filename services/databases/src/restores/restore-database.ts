import { describeLoadFindings } from '@drydock/agent/database';
import type {
  preflightDatabaseBackupRestore,
  restoreDatabaseBackup,
} from '@drydock/contracts/databases/database-backups';
import { majorOf } from '@drydock/contracts/databases/major';
import type { Finding, Preflight } from '@drydock/contracts/platform/preflight';
import type { ExecuteHandlers, HandlerRequest, ReadHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowedOn, followHeaders, problemOf } from '@drydock/workflow/http';
import { findUnfinished } from '@drydock/workflow/store';
import { uuidv7 } from 'uuidv7';
import { findBackup } from '../backups/backup.store';
import type { DatabaseBackup } from '../backups/backup.types';
import { neededBytes } from '../backups/pack-backup';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { changeStatus } from '../databases/database.store';
import { databasePath, databaseResourceKey, type ManagedDatabase, onDatabase } from '../databases/database.types';
import { holdDatabase, readDatabase, viewDatabase } from '../databases/database-record';
import { refuseRestore } from './restore.rules';
import { restoreDatabaseWorkflow } from './restore-database.workflow';
import { suffices, tryBackup } from './try-backup.workflow';

interface RestoreFacts {
  managed: ManagedDatabase;
  /** Null if the database has no such backup. */
  backup: DatabaseBackup | null;
  /** The free bytes on the database's machine; null if the agent does not answer. */
  freeBytes: number | null;
  /**
   * The finding that tells why there is no proof of the backup. Null if a trial load recorded a proof, or if no trial
   * was needed.
   */
  trial: Finding | null;
  now: Date;
}

/** The age in seconds above which a backup gets a warning. */
const oldAfterSeconds = 7 * 86_400;

function viewPreflight(facts: RestoreFacts, refusal: Preflight['refusal']): Preflight {
  const { managed, backup, freeBytes, now } = facts;
  const takenAt = backup?.createdAt ?? null;
  const ageSeconds = takenAt === null ? 0 : Math.max(0, Math.floor((now.getTime() - takenAt.getTime()) / 1_000));
  const rawBytes = backup?.archive?.rawBytes ?? null;
  const needed = rawBytes === null ? null : neededBytes(rawBytes);
  return {
    would:
      `What ${managed.label} holds would be replaced by the backup, behind its address; ` +
      'what is replaced is kept as a backup. ' +
      'Sessions end at the switch; roles, their passwords and memberships stay as they are now.',
    resource: databasePath(managed.id),
    point:
      backup === null || takenAt === null
        ? null
        : { id: backup.id, taken_at: takenAt.toISOString(), age_seconds: ageSeconds },
    space: needed === null ? null : { needed_bytes: needed, free_bytes: freeBytes },
    refusal,
    findings: findingsOf(facts, needed, ageSeconds),
    undo: false,
  };
}

function findingsOf(
  { managed, backup, freeBytes, trial }: RestoreFacts,
  needed: number | null,
  ageSeconds: number,
): Finding[] {
  const findings: Array<Finding | false> = [
    ...(trial === null ? [] : [trial]),
    ...proofFindings(backup, managed.engineVersion),
    ageSeconds > oldAfterSeconds && {
      level: 'WARNING',
      code: 'old_backup',
      detail: `Everything written since ${backup?.createdAt.toISOString()} is replaced.`,
    },
    backup !== null &&
      backup.engineVersion !== managed.engineVersion && {
        level: 'INFO',
        code: 'older_major',
        detail: `The backup was taken from ${backup.engineVersion}; it is loaded into ${managed.engineVersion}.`,
      },
    freeBytes === null && {
      level: 'WARNING',
      code: 'host_unreachable',
      detail: "The database's host does not answer; its space is unknown.",
    },
    needed !== null &&
      freeBytes !== null &&
      freeBytes < needed && {
        level: 'ERROR',
        code: 'storage_full',
        detail: `${needed} bytes are needed and ${freeBytes} are free.`,
      },
  ];
  return findings.filter((finding) => finding !== false);
}

/** The findings of the latest load of the backup, if it was a load into this version; otherwise empty. */
function proofFindings(backup: DatabaseBackup | null, version: string): Finding[] {
  if (backup === null || backup.proof === null || String(backup.proof.major) !== version) return [];
  const { of, at, refused, findings } = backup.proof;
  if (refused.length === 0) {
    const loaded = of === 'content' ? 'All of the backup' : 'The schema of the backup';
    const rest =
      of === 'content'
        ? ' and its rows were counted'
        : '; the restore itself proves the rows before anything is replaced';
    const but = findings.length > 0 ? ', all but what the findings beside this one name' : '';
    const detail = `${loaded} was loaded into ${version} at ${at}${but}${rest}.`;
    return [{ level: 'INFO', code: 'backup_proven', detail }, ...describeLoadFindings(findings)];
  }
  const remedy =
    version === backup.engineVersion
      ? 'Choose another backup, or mend the object in the database and take a new one'
      : `Make a database of ${backup.engineVersion} from the backup, and change or drop the object there`;
  return refused.map(({ object, reason }): Finding => {
    return {
      level: 'ERROR',
      code: 'statement_refused',
      detail: `${object} cannot be made in ${version}: ${reason}. ${remedy}.`,
    };
  });
}

/**
 * The preflight of a restore applies the rule of the restore and leaves the database unchanged. The schema of a backup
 * without a sufficient proof is loaded on trial into an instance beside the database. If the agent does not answer, the
 * preflight reports this as a finding and does not fail.
 */
export const preflightRestore = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { now, params, requestId } = request;
      const { database, provider } = context;
      const managed = await readDatabase(context, request);
      const readBackup = async () =>
        params.backupId === '' ? null : findBackup(database.pool, managed.id, params.backupId);
      const trial = await tryIfNeeded(context, request, managed, await readBackup());
      const backup = await readBackup();
      const unfinished = await findUnfinished(database.sql(), databaseResourceKey(managed.id));
      const refusal = refuseRestore({ managed, unfinished }, backup);
      const { id: databaseId, orgId, mode } = managed;
      const hosted = await provider.describe({ databaseId, orgId, mode }).catch(() => null);
      const facts = { managed, backup, freeBytes: hosted?.freeBytes ?? null, trial, now };
      return { status: 200, body: viewPreflight(facts, refusal === null ? null : problemOf(refusal).body(requestId)) };
    },
  }) satisfies ReadHandlers<typeof preflightDatabaseBackupRestore>;

/**
 * Loads the schema of the backup on trial, if the backup can be restored and its recorded proof does not suffice.
 * Resolves with a finding if the trial recorded no proof, otherwise with null.
 */
async function tryIfNeeded(
  context: HandlerContext,
  request: Pick<HandlerRequest<typeof preflightDatabaseBackupRestore>, 'caller' | 'requestId' | 'now'>,
  managed: ManagedDatabase,
  backup: DatabaseBackup | null,
): Promise<Finding | null> {
  if (backup === null || refuseRestore({ managed, unfinished: null }, backup) !== null) return null;
  if (suffices(backup.proof, majorOf(managed.engineVersion), request.now)) return null;
  return tryBackup(context, request, managed, backup);
}

/** Accepts the restore of one of the database's backups. {@link restoreDatabaseWorkflow} carries it out. */
export const restoreDatabase = (context: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { backupId } = request.params;
      const managed = await holdDatabase(tx, request);
      const backup = backupId === '' ? null : await findBackup(tx, managed.id, backupId);
      const refuse = (unfinished: UnfinishedWorkflow | null) => refuseRestore({ managed, unfinished }, backup);
      await assertAllowedOn(context.database.sql(tx), databaseResourceKey(managed.id), refuse);
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(managed.id),
        definition: restoreDatabaseWorkflow,
        input: { backupId, safetyCopyId: uuidv7() },
        action: 'database_backup.restore',
      });
      await changeStatus(tx, managed.id, 'provisioning');
      const body = viewDatabase({ ...managed, status: 'provisioning' });
      return { status: 202, headers: followHeaders(databasePath(managed.id), workflowId), body };
    },
  }) satisfies ExecuteHandlers<typeof restoreDatabaseBackup, Tx, undefined>;
