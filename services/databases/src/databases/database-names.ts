import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** What one workflow at a time holds: whatever is done to a database excludes everything else. */
export const databaseResourceKey = (databaseId: string): string => `database:${databaseId}`;

export const databaseSubject = (databaseId: string): { type: 'database'; id: string } => ({ type: 'database', id: databaseId });

/** What the audit log names. */
export const databasePath = (databaseId: string): string => `/v1/databases/${databaseId}`;

/** What a workflow that is done to a database is accepted with. */
export const onDatabase = (databaseId: string): WorkTarget => ({
  resourceKey: databaseResourceKey(databaseId),
  subject: databaseSubject(databaseId),
  path: databasePath(databaseId),
});
