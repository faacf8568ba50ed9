import { Problem, type ProblemDetails } from '@drydock/contracts/platform/problem';
import type { ProblemCode } from '@drydock/contracts/platform/problems';

class OutcomeUnknown extends Problem {}

/**
 * Thrown by `awaitOutcome` if the effect was accepted and its outcome is not known yet: the caller gets the problem
 * (503), and the same Idempotency-Key continues to wait for the same effect instead of starting another.
 */
export const outcomeUnknown = (code: ProblemCode, details: ProblemDetails = {}): Problem =>
  new OutcomeUnknown(code, details);

export const isOutcomeUnknown = (error: unknown): boolean => error instanceof OutcomeUnknown;
