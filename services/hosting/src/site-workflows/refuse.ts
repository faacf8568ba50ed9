import { type Problem, problem } from '@drydock/contracts/problem';
import type { Refusal } from '../sites/site.rules';

/** A rule's refusal as the answer to a caller. */
export const problemOf = ({ code, extra, retryAfterSeconds }: Refusal): Problem =>
  problem(code, { ...(extra === undefined ? {} : { extra }), ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) });

export function assertAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw problemOf(refusal);
}
