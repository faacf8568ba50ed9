import type { Reader } from '../context/database.store';
import type { Owner } from '../sites/site.types';
import { restoreOffsiteWorkflow } from './restore-offsite.workflow';

/** The site's newest restore from a copy. Null if there was no such restore. */
export async function findLastRestore(
  tx: Reader,
  site: Owner & { id: string },
): Promise<{ workflowId: string; copyId: string } | null> {
  const row = await tx.workflow.findFirst({
    where: {
      kind: restoreOffsiteWorkflow.kind,
      subjectType: 'site',
      subjectId: site.id,
      orgId: site.orgId,
      mode: site.mode,
    },
    orderBy: { id: 'desc' },
    select: { id: true, input: true },
  });
  if (row === null) return null;
  return { workflowId: row.id, copyId: restoreOffsiteWorkflow.input.parse(row.input).copyId };
}
