import { fail, type StepFailure } from '@drydock/workflow/step-error';
import type { Refusal } from '@drydock/workflow-kit/refusal.rules';

/** A rule's refusal, asked again by a workflow: it ends it. */
export const failureOf = ({ code, extra }: Refusal): StepFailure => fail(code, extra === undefined ? {} : { extra });

export function assertStillAllowed(refusal: Refusal | null): void {
  if (refusal !== null) throw failureOf(refusal);
}
