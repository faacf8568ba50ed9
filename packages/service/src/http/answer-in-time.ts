import { problem } from '@drydock/contracts/platform/problem';
import type { Log } from '../telemetry/log';

/**
 * Milliseconds after which every request is answered, even if it still waits for something. The gateway waits a little
 * longer, because only this process knows what was begun.
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
 * Resolves with the result of `work`, or after `withinMs` with a 503 that says how far the request has come. The work
 * continues after the 503, and its answer is kept for its Idempotency-Key.
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
