import type { WorkTarget } from '@drydock/workflow/http/accept-workflow';

/** Workflows with the same key exclude each other: only one at a time works on a server. */
export const serverResourceKey = (serverId: string): string => `server:${serverId}`;

export const serverSubject = (serverId: string): { type: 'server'; id: string } => ({ type: 'server', id: serverId });

/** The path under which the audit log names a server. */
export const serverPath = (serverId: string): string => `/v1/compute/servers/${serverId}`;

/** The target of a workflow on a server. */
export const onServer = (serverId: string): WorkTarget => ({
  resourceKey: serverResourceKey(serverId),
  subject: serverSubject(serverId),
  path: serverPath(serverId),
});
