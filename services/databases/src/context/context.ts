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

/** The dependencies of workflow steps. Handlers never get the whole provider or the storage of backups. */
export interface WorkContext {
  database: DatabasesDatabase;
  provider: DatabaseProvider;
  backupStorage: BackupStorage;
  passwords: DatabasePasswords;
  /** The 32 bytes from which the key of every archive is derived. */
  archiveKey: RootKey;
  /** Seconds for which an old instance is kept after an upgrade, and seconds between two proofs of a backup. */
  oldInstanceSeconds: number;
  verifyRestoreSeconds: number;
  /**
   * The least duration, in milliseconds, of an upgrade or a restore of a sandbox database whose label asks for
   * slowness.
   */
  slowMs: number;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

/** The database that a step works on. */
export const refOf = ({
  orgId,
  mode,
  subject,
}: Pick<WorkflowRun<unknown>, 'orgId' | 'mode' | 'subject'>): DatabaseRef => ({
  databaseId: subject.id,
  orgId,
  mode,
});
