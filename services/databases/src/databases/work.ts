import type { RootKey } from '@drydock/archive/format/archive-keys';
import { type WorkflowRun, workflowsFor } from '@drydock/workflow/definition/definition';
import type { DatabasesDatabase, Tx } from '../database.store';
import type { BackupStorage } from '../providers/backup-storage';
import type { DatabaseProvider, DatabaseRef } from '../providers/database-provider';
import type { DatabasePasswords } from './database-password';

/** The parts that workflow steps are given. They include the drivers, which handlers never see. */
export interface WorkContext {
  database: DatabasesDatabase;
  provider: DatabaseProvider;
  backupStorage: BackupStorage;
  passwords: DatabasePasswords;
  /** 32 bytes: every archive is sealed with a key derived from it. */
  archiveKey: RootKey;
  /** How long an old instance is kept, and how often a backup is proved. */
  oldInstanceSeconds: number;
  verifyRestoreSeconds: number;
  /** How long a sandbox database called slow takes over an upgrade. */
  slowMs: number;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

/** The database that a step works on. */
export const refOf = ({ orgId, mode, subject }: Pick<WorkflowRun<unknown>, 'orgId' | 'mode' | 'subject'>): DatabaseRef => ({
  databaseId: subject.id,
  orgId,
  mode,
});
