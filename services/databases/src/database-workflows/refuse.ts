import { type Problem, problem } from '@drydock/contracts/problem';
import type { Refusal } from '../databases/database.rules';

/** A rule's refusal as the answer to a caller. */
export const problemOf = ({ code, extra }: Refusal): Problem => problem(code, extra === undefined ? {} : { extra });

export function assertAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw problemOf(refusal);
}
