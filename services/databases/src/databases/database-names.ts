import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** Workflows with the same key exclude each other: only one at a time works on a database. */
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
