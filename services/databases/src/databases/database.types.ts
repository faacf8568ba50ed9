import type { DatabaseEngine, DatabaseStatus } from '@drydock/contracts/databases/databases';
import type { Metadata, Mode } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import type { WorkTarget } from '@drydock/workflow/http';

/** The key that workflows on a database lock, so that only one of them is unfinished at a time. */
export const databaseResourceKey = (databaseId: string): string => `database:${databaseId}`;

export const databaseSubject = (databaseId: string): { type: 'database'; id: string } => ({
  type: 'database',
  id: databaseId,
});

export const databasePath = (databaseId: string): string => `/v1/databases/${databaseId}`;

export const onDatabase = (databaseId: string): WorkTarget => ({
  resourceKey: databaseResourceKey(databaseId),
  subject: databaseSubject(databaseId),
  path: databasePath(databaseId),
});

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
