import { describeLoadFindings } from '@drydock/agent/database/load-findings';
import type { Finding, Preflight } from '@drydock/contracts/platform/preflight';
import type { DatabaseBackup } from '../backups/backup.types';
import type { ManagedDatabase } from '../databases/database.types';
import { databasePath } from '../databases/database-names';
import { neededBytes } from './restore.rules';

export interface RestoreFacts {
  managed: ManagedDatabase;
  /** Null when there is no such backup of the database. */
  backup: DatabaseBackup | null;
  /** On the database's host; null when it does not answer. */
  freeBytes: number | null;
  /** The reason why a trial load gave no result; null if none was needed, or if its result is on record. */
  trial: Finding | null;
  now: Date;
}

/** A backup older than this gets a warning, in seconds. */
const oldAfterSeconds = 7 * 86_400;

export function viewPreflight(facts: RestoreFacts, refusal: Preflight['refusal']): Preflight {
  const { managed, backup, freeBytes, now } = facts;
  const takenAt = backup?.createdAt ?? null;
  const ageSeconds = takenAt === null ? 0 : Math.max(0, Math.floor((now.getTime() - takenAt.getTime()) / 1_000));
  const rawBytes = backup?.archive?.rawBytes ?? null;
  const needed = rawBytes === null ? null : neededBytes(rawBytes);
  return {
    would:
      `What ${managed.label} holds would be replaced by the backup, behind its address; what is replaced is kept as a backup. ` +
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

/** The findings of the latest load of the backup into this version; empty if there was none. */
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
