import type { ServiceApi } from './service-api';

/** The actions on the resource with the path `target`, oldest first, from the service's audit outbox. */
export async function auditedOf(api: Pick<ServiceApi, 'rows'>, target: string): Promise<string[]> {
  const rows = await api.rows<{ action: string }>('SELECT action FROM audit_outbox WHERE target = $1 ORDER BY seq', [
    target,
  ]);
  return rows.map(({ action }) => action);
}

/** How many entries of this workflow the service's audit outbox has. */
export const auditRowsOf = async (api: Pick<ServiceApi, 'rows'>, workflowId: string): Promise<number> =>
  (await api.rows('SELECT 1 FROM audit_outbox WHERE workflow_id = $1', [workflowId])).length;
