import { Problem, problem } from '@drydock/contracts/platform/problem';
import { TokenRefusal } from '../access/internal-token';
import { classifyDatabaseError } from '../database/database-error';
import type { Log } from '../telemetry/log';
import type { Reply } from './route';

/**
 * The problem that the caller gets for an error. An error that is no {@link Problem} becomes one without details, and
 * its own text is only in the log.
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

/** A reply as it is sent. A replay sends exactly the same body. */
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

/**
 * Milliseconds after which a request is answered even if its handler has not ended. The gateway waits a little longer,
 * so that its client gets this answer: only this process knows what was begun.
 */
export const answerWithinMs = 18_500;

/**
 * The progress of a request, and the time that is left for it. Once the caller was told that nothing was begun, nothing
 * may begin any more.
 */
export interface AnswerTime {
  leftMs(): number;
  /** Must be called before the effect may happen. Throws if the answer has been sent already. */
  begin(): void;
  /** Must be called once the effect is committed and only its outcome is still awaited. */
  accept(): void;
}

/**
 * The detail for a request whose effect was accepted. `isRepeatable` says whether the request has an
 * Idempotency-Key. A repeat without an Idempotency-Key would be carried out a second time.
 */
export const acceptedDetail = (isRepeatable: boolean): string =>
  isRepeatable
    ? 'It was accepted and has not ended yet. ' +
      'Read the resource, or send the request again with the same Idempotency-Key to learn how it ends.'
    : 'It was accepted and has not ended yet. Read the resource to learn how it ends.';

const told = {
  nothing: () => 'The resource could not be read in time. Nothing was started. Try again after Retry-After.',
  begun: (isRepeatable: boolean) =>
    'It was begun, but did not end in time: it may or may not take effect. ' +
    (isRepeatable
      ? 'Send it again with the same Idempotency-Key.'
      : 'Read the resource before you send it again: without an Idempotency-Key it may take effect twice.'),
  accepted: acceptedDetail,
};

export interface AnswerLimits {
  service: string;
  log: Log;
  withinMs: number;
  /** Whether the request has an Idempotency-Key. */
  isRepeatable: boolean;
}

/**
 * Resolves with the result of `work`. Rejects after `withinMs` with a 503 that says how far the request has come. Work
 * that has begun continues after the 503. If the request has an Idempotency-Key, the answer of that work is stored for
 * a repeat.
 */
export async function answerInTime<T>(
  { service, log, withinMs, isRepeatable }: AnswerLimits,
  work: (time: AnswerTime) => Promise<T>,
): Promise<T> {
  const endsAtMs = performance.now() + withinMs;
  let known: keyof typeof told = 'nothing';
  let isLate = false;
  let timer: NodeJS.Timeout | undefined;
  const tooLate = () =>
    problem('dependency_unavailable', {
      detail: told[known](isRepeatable),
      extra: { dependency: service },
      retryAfterSeconds: 5,
    });
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      isLate = true;
      reject(tooLate());
    }, withinMs);
  });
  const working = work({
    leftMs: () => endsAtMs - performance.now(),
    begin: () => {
      if (isLate) throw tooLate();
      known = 'begun';
    },
    accept: () => {
      known = 'accepted';
    },
  });
  working.catch((err: unknown) => isLate && log.warn({ err }, 'failed after its answer had gone out'));
  try {
    return await Promise.race([working, late]);
  } finally {
    clearTimeout(timer);
  }
}
