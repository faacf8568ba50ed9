import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Sql } from '@drydock/service/database/sql';
import { findUnfinished } from '@drydock/workflow/find-unfinished';
import { type Refusal, refusalByWorkflow } from './refusal.rules';

/** A rule's refusal as the answer to a caller. */
export const problemOf = ({ code, extra, retryAfterSeconds }: Refusal): Problem =>
  problem(code, { ...(extra === undefined ? {} : { extra }), ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) });

export function assertAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw problemOf(refusal);
}

/** Throws `operation_in_progress` or `needs_attention`, with the workflow's id, while one holds the resource. */
export async function assertFree(sql: Sql, resourceKey: string): Promise<void> {
  assertAllowed(refusalByWorkflow(await findUnfinished(sql, resourceKey)));
}
