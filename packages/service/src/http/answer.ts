import { Problem, problem } from '@drydock/contracts/platform/problem';
import { TokenRefusal } from '../access/internal-token';
import { classifyDatabaseError } from '../database/database-error';
import type { Reply } from './route';

/**
 * The problem that a caller may see for a failure. The failure itself goes only to the log. Only this function decides
 * which part of a failure is public.
 */
export function problemOfError(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TokenRefusal)
    return problem('unauthenticated', { internal: `internal token: ${error.message}` });
  const kind = classifyDatabaseError(error);
  // A conflict that remains after all retries is a sign of load, not of a bug.
  if (kind === 'unavailable' || kind === 'conflict') {
    return problem('dependency_unavailable', { extra: { dependency: 'database' }, retryAfterSeconds: 5, cause: error });
  }
  return problem('internal_error', { cause: error });
}

/** A reply as it is sent. A replay sends exactly the same bytes. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** The exact text of the body; '' if there is none. */
  text: string;
}

/**
 * The challenge of a 401 that refuses the CALLER's key, because the key was revoked after the gateway had verified it.
 * Any other 401 of a service is about the gateway's token.
 */
export const keyChallenge = 'Bearer realm="api-key"';

/** The seconds in `Retry-After` of a 503 whose problem does not state its own seconds. */
const retryAfterSecondsDefault = 5;

export function answerOf(reply: Reply): Answer {
  const text = reply.body === undefined ? '' : JSON.stringify(reply.body);
  return {
    status: reply.status,
    headers: { ...reply.headers, ...(text === '' ? {} : { 'content-type': 'application/json' }) },
    text,
  };
}

export function answerOfProblem(problem: Problem, requestId: string, headers: Record<string, string> = {}): Answer {
  const { status } = problem;
  const seconds = problem.details.retryAfterSeconds ?? (status === 503 ? retryAfterSecondsDefault : undefined);
  return {
    status,
    headers: {
      ...headers,
      'content-type': 'application/problem+json',
      ...(seconds === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(seconds))) }),
      ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
    text: JSON.stringify(problem.body(requestId)),
  };
}
