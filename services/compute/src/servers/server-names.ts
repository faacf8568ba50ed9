import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** What one workflow at a time holds: whatever is done to a server excludes everything else. */
export const serverResourceKey = (serverId: string): string => `server:${serverId}`;

export const serverSubject = (serverId: string): { type: 'server'; id: string } => ({ type: 'server', id: serverId });

/** What the audit log names. */
export const serverPath = (serverId: string): string => `/v1/compute/servers/${serverId}`;

/** What a workflow that is done to a server is accepted with. */
export const onServer = (serverId: string): WorkTarget => ({
  resourceKey: serverResourceKey(serverId),
  subject: serverSubject(serverId),
  path: serverPath(serverId),
});
