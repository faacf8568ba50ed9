import { setTimeout as wait } from 'node:timers/promises';
import { timeLimit } from '@drydock/process';
import { BrokenCircuitError, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import type { z } from 'zod';
import type { Change } from '../compute.types';
import { ComputeError } from '../compute-provider';
import { type HttpAnswer, type HttpCall, type HttpOptions, NoAnswer, openProviderHttp } from './provider-http';
import { createRateBudget } from './rate-budget';

const firstPauseMs = 1_000;

/**
 * Waits before a call that met a conflict is sent again: one second, doubled with each repeat, with up to a quarter
 * more or less.
 */
const pauseBeforeConflict = (tried: number, signal?: AbortSignal): Promise<void> =>
  wait(firstPauseMs * 2 ** (tried - 1) * (0.75 + Math.random() / 2), undefined, { signal });

/** The settings of every provider behind an HTTP API. */
export interface ApiOptions {
  baseUrl: string;
  deadlineMs?: number | undefined;
  bodyBytesMax?: number | undefined;
  /** See ComputeDriver.lostAnswerSeconds. */
  lostAnswerSeconds?: number | undefined;
}

export type Query = ReadonlyArray<readonly [string, string]>;
export type ReadPath = readonly (string | number)[];

/**
 * Calls to one account of a provider. They share a rate limit and the circuit breakers. Every answer is checked against
 * a schema.
 */
export interface ProviderApi {
  /** Reads something from the provider. Null if the provider does not have it. */
  read<T>(path: ReadPath, query: Query, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T | null>;
  /** Sends a change. The call is repeated only after a `conflict`, because the provider has then changed nothing. */
  change<T>(call: HttpCall, kind: Change['kind'], schema: z.ZodType<T>, signal?: AbortSignal): Promise<T>;
  close(): Promise<void>;
}

interface Provider extends ApiOptions, Pick<HttpOptions, 'headers' | 'ca'> {
  /** The error for a definite refusal; null for any other answer. `kind` is undefined for reads. */
  refusalIn(answer: HttpAnswer, kind?: Change['kind']): ComputeError | null;
  /**
   * The part of the provider that a call depends on. Each part has a circuit breaker of its own. Null if the answer to
   * the call says nothing about the provider's health. Without this function all calls share one circuit breaker.
   */
  partOf?(path: ReadPath): string | null;
}

const conflictAttemptsMax = 3;
/** Describes an answer for an error. The text of an accepted change is left out, because it may contain a password. */
const describe = ({ status, text }: HttpAnswer): string =>
  status < 300 ? `${status} and ${text.length} characters that cannot be read` : `${status} ${text.slice(0, 200)}`;

export function openProviderApi(provider: Provider): ProviderApi {
  const {
    baseUrl,
    headers,
    ca,
    refusalIn,
    partOf = () => '',
    deadlineMs = 10_000,
    bodyBytesMax = 4 * 1024 * 1024,
  } = provider;
  const http = openProviderHttp({ baseUrl, headers, deadlineMs, bodyBytesMax, ca });
  const [budget, guard] = [createRateBudget(), openCircuits()];

  const ask = async (
    call: HttpCall,
    signal: AbortSignal | undefined,
    whenSilent: 'unavailable' | 'ambiguous',
  ): Promise<HttpAnswer> => {
    try {
      const answer = await http.ask(call, signal);
      budget.note(answer);
      return answer;
    } catch (error) {
      const reason = error instanceof NoAnswer && !error.wasSent ? 'unavailable' : whenSilent;
      throw new ComputeError(reason, error instanceof Error ? error.message : String(error), { cause: error });
    }
  };

  const readOnce = async <T>(call: HttpCall, schema: z.ZodType<T>, signal: AbortSignal): Promise<T | null> => {
    const answer = await ask(call, signal, 'unavailable');
    const parsed = answer.status === 200 ? schema.safeParse(answer.json) : undefined;
    if (parsed?.success === true) return parsed.data;
    const refusal = refusalIn(answer);
    if (refusal?.reason === 'machine_not_found') return null;
    throw refusal ?? new ComputeError('unavailable', describe(answer));
  };

  const changeOnce = async <T>(
    call: HttpCall,
    kind: Change['kind'],
    schema: z.ZodType<T>,
    signal?: AbortSignal,
  ): Promise<T> => {
    const answer = await ask(call, signal, 'ambiguous');
    const parsed = answer.status >= 200 && answer.status < 300 ? schema.safeParse(answer.json) : undefined;
    if (parsed?.success === true) return parsed.data;
    throw refusalIn(answer, kind) ?? new ComputeError('ambiguous', describe(answer));
  };

  return {
    read: async (path, query, schema, signal) => {
      await budget.admit(signal);
      return await readAgain(
        deadlineMs,
        (ends) => guard(partOf(path), () => readOnce({ method: 'GET', path, query }, schema, ends)),
        signal,
      );
    },
    change: async (call, kind, schema, signal) => {
      // An abort between two calls rejects with `refusal`, after which the caller may send again: either no call was
      // sent yet, or the provider refused the last call with a conflict. An abort during a call is `ambiguous`.
      let refusal = new ComputeError('unavailable', 'called off before it was sent');
      const unsent = (waited: Promise<void>): Promise<void> =>
        waited.catch((error: unknown) => {
          throw signal?.aborted === true ? refusal : error;
        });
      for (let tried = 1; ; tried += 1) {
        await unsent(budget.admit(signal));
        try {
          return await guard(partOf(call.path), () => changeOnce(call, kind, schema, signal));
        } catch (error) {
          if (!(error instanceof ComputeError) || error.reason !== 'conflict' || tried === conflictAttemptsMax)
            throw error;
          refusal = error;
          await unsent(pauseBeforeConflict(tried, signal));
        }
      }
    },
    close: () => http.close(),
  };
}

/**
 * The number of successive calls without a usable answer that opens the circuit breaker. After `openMs` one call is
 * sent as a test.
 */
const failuresMax = 8;
const openMs = 5_000;

/**
 * Runs a call unless the circuit breaker of its part is open, so that requests and workers do not pile up at a provider
 * that does not answer. A call whose part is null is always sent.
 *
 * @throws ComputeError `unavailable` at once while the circuit breaker is open; then nothing was sent
 */
export type Guard = <T>(part: string | null, call: () => Promise<T>) => Promise<T>;

type Circuit = <T>(call: () => Promise<T>) => Promise<T>;

const isSilent = (error: Error): boolean =>
  error instanceof ComputeError && (error.reason === 'unavailable' || error.reason === 'ambiguous');

function openCircuits(): Guard {
  const circuits = new Map<string, Circuit>();
  return (part, call) => {
    if (part === null) return call();
    const circuit = circuits.get(part) ?? createCircuit();
    circuits.set(part, circuit);
    return circuit(call);
  };
}

function createCircuit(): Circuit {
  const policy = circuitBreaker(handleWhen(isSilent), {
    halfOpenAfter: openMs,
    breaker: new ConsecutiveBreaker(failuresMax),
  });
  return (call) =>
    policy.execute(call).catch((error: unknown) => {
      if (!(error instanceof BrokenCircuitError)) throw error;
      throw new ComputeError('unavailable', 'the provider has not answered for a while', {
        retryAfterSeconds: openMs / 1_000,
        cause: error,
      });
    });
}

const attemptsMax = 3;
const readPauseMs = 150;

/**
 * Repeats a read that failed as `unavailable`, or as `rate_limited` with a wait that ends before the deadline. A read
 * that an open circuit breaker refused is not repeated. Up to three attempts together take at most `deadlineMs`. Each
 * attempt gets only a part of the time, so that an attempt that hangs leaves time for the next.
 */
async function readAgain<T>(
  deadlineMs: number,
  attempt: (ends: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const endsAtMs = performance.now() + deadlineMs;
  for (let tried = 1; ; tried += 1) {
    const ownMs = Math.max(1, Math.min(deadlineMs * 0.4, endsAtMs - performance.now()));
    const ends = timeLimit(Math.ceil(ownMs));
    try {
      return await attempt(signal === undefined ? ends : AbortSignal.any([ends, signal]));
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ComputeError)) throw error;
      const pauseMs = pauseOf(error, tried);
      if (pauseMs === null || tried === attemptsMax || performance.now() + pauseMs >= endsAtMs) throw error;
      await wait(pauseMs, undefined, { signal });
    }
  }
}

function pauseOf({ reason, retryAfterSeconds }: ComputeError, tried: number): number | null {
  const jitter = 0.75 + Math.random() / 2;
  if (reason === 'rate_limited') return (retryAfterSeconds ?? 1) * 1_000 * (1 + Math.random() / 4);
  return reason === 'unavailable' && retryAfterSeconds === null ? readPauseMs * 2 ** (tried - 1) * jitter : null;
}
