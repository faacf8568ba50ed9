import { Problem, problem } from '@drydock/contracts/platform/problem';
import { TokenRefusal } from '../access/internal-token';
import { classifyDatabaseError } from '../database/database-error';

/**
 * The problem that a caller may see for a failure. The failure itself only goes to the log. No other code decides which
 * part of a failure is public.
 */
export function problemOfError(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TokenRefusal)
    return problem('unauthenticated', { internal: `internal token: ${error.message}` });
  const kind = classifyDatabaseError(error);
  // A conflict that survived its retries is load, not a bug.
  if (kind === 'unavailable' || kind === 'conflict') {
    return problem('dependency_unavailable', { extra: { dependency: 'database' }, retryAfterSeconds: 5, cause: error });
  }
  return problem('internal_error', { cause: error });
}
