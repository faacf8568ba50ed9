import type { RootKey } from '@drydock/archive';
import type { QuotaRule } from '@drydock/service/http';
import { type WorkflowRun, workflowsFor } from '@drydock/workflow/definition';
import type { WorkflowContext } from '@drydock/workflow/http';
import type { BackupStorage } from '../providers/backup-storage';
import type { DatabaseProvider, DatabaseReader, DatabaseRef } from '../providers/database-provider';
import type { DatabasesDatabase, Tx } from './database.store';
import type { DatabasePasswords } from './database-password';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: DatabasesDatabase;
  quota: QuotaRule;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
}

/** The parts that workflow steps are given. They include the drivers, which handlers never see. */
export interface WorkContext {
  database: DatabasesDatabase;
  provider: DatabaseProvider;
  backupStorage: BackupStorage;
  passwords: DatabasePasswords;
  /** 32 bytes: every archive is sealed with a key derived from it. */
  archiveKey: RootKey;
  /** How long an old instance is kept, and the time between two proofs of a backup. */
  oldInstanceSeconds: number;
  verifyRestoreSeconds: number;
  /** The time that an upgrade takes at least on a sandbox database that is slow on purpose. */
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
