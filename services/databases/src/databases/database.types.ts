import type { DatabaseEngine, DatabaseStatus } from '@drydock/contracts/databases/databases';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';

/** The organisation and the mode that a look-up is limited to. */
export interface Owner {
  orgId: string;
  mode: Mode;
}

export interface ManagedDatabase {
  id: string;
  orgId: string;
  mode: Mode;
  label: string;
  engine: DatabaseEngine;
  engineVersion: string;
  size: string;
  status: DatabaseStatus;
  statusDetail: string;
  host: string;
  port: number;
  databaseName: string;
  username: string;
  highAvailability: boolean;
  lastBackupAt: Date | null;
  restoreVerifiedAt: Date | null;
  metadata: Metadata;
  createdAt: Date;
}
