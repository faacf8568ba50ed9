import type { Preflight } from '@drydock/contracts/platform/preflight';
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
  now: Date;
}

/** Older than this a backup is worth a second thought, in seconds. */
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
    point: backup === null || takenAt === null ? null : { id: backup.id, taken_at: takenAt.toISOString(), age_seconds: ageSeconds },
    space: needed === null ? null : { needed_bytes: needed, free_bytes: freeBytes },
    refusal,
    findings: findingsOf(facts, needed, ageSeconds),
    undo: false,
  };
}

function findingsOf({ managed, backup, freeBytes }: RestoreFacts, needed: number | null, ageSeconds: number): Preflight['findings'] {
  const findings: Array<Preflight['findings'][number] | false> = [
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
      freeBytes < needed && { level: 'ERROR', code: 'storage_full', detail: `${needed} bytes are needed and ${freeBytes} are free.` },
  ];
  return findings.filter((finding) => finding !== false);
}
