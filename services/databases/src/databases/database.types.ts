import type { DatabaseEngine, DatabaseStatus } from '@drydock/contracts/databases/databases';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import type { WorkTarget } from '@drydock/workflow/http';

/** The key by which workflows on a database exclude each other. Only one workflow at a time works on a database. */
export const databaseResourceKey = (databaseId: string): string => `database:${databaseId}`;

export const databaseSubject = (databaseId: string): { type: 'database'; id: string } => ({
  type: 'database',
  id: databaseId,
});

/** The path under which the audit log names a database. */
export const databasePath = (databaseId: string): string => `/v1/databases/${databaseId}`;

/** The target of a workflow on a database. */
export const onDatabase = (databaseId: string): WorkTarget => ({
  resourceKey: databaseResourceKey(databaseId),
  subject: databaseSubject(databaseId),
  path: databasePath(databaseId),
});

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

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
