import type { RootKey } from '@drydock/archive';
import type { QuotaRule } from '@drydock/service/http';
import { type WorkflowRun, workflowsFor } from '@drydock/workflow/definition';
import type { WorkflowContext } from '@drydock/workflow/http';
import type { BackupStorage } from '../providers/backup-storage';
import type { DatabaseProvider, DatabaseReader, DatabaseRef } from '../providers/database-provider';
import type { DatabasesDatabase, Tx } from './database.store';
import type { DatabasePasswords } from './database-password';

/** The dependencies of handlers. Handlers read from the database agent and never change anything there. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: DatabasesDatabase;
  quota: QuotaRule;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
}

/**
 * The dependencies of workflow steps. Handlers never get the provider with its changing calls, nor the storage of
 * backups.
 */
export interface WorkContext {
  database: DatabasesDatabase;
  provider: DatabaseProvider;
  backupStorage: BackupStorage;
  passwords: DatabasePasswords;
  /** The secrets of 32 bytes from which the keys of archives are derived, the current one first. */
  archiveKey: RootKey;
  /** How long an old instance is kept after an upgrade or a restore, in seconds. */
  oldInstanceSeconds: number;
  /** The time between two proofs of a database's backups, in seconds. */
  verifyRestoreSeconds: number;
  /**
   * The least duration, in milliseconds, of an upgrade or a restore of a sandbox database whose label contains `slow`.
   */
  slowMs: number;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

export const refOf = ({
  orgId,
  mode,
  subject,
}: Pick<WorkflowRun<unknown>, 'orgId' | 'mode' | 'subject'>): DatabaseRef => ({
  databaseId: subject.id,
  orgId,
  mode,
});
