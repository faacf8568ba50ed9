import type { ProblemCode } from '@drydock/contracts/problems';
import type { UnfinishedWorkflow } from '../database-workflows/unfinished.types';
import type { ManagedDatabase } from './database.types';

/** Why something may not be done now. */
export interface Refusal {
  code: ProblemCode;
  extra?: Record<string, unknown>;
}

/** What comes before every other state of the database: somebody is at work on it, or staff have to look. */
export function refusalByWorkflow(unfinished: UnfinishedWorkflow | null): Refusal | null {
  if (unfinished === null) return null;
  const code = unfinished.status === 'needs_attention' ? 'needs_attention' : 'operation_in_progress';
  return { code, extra: { workflow_id: unfinished.id } };
}

export const refuseUnavailable = ({ status }: Pick<ManagedDatabase, 'status'>): Refusal | null =>
  status === 'available' ? null : { code: 'database_not_available' };
