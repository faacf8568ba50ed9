import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { timeLimit } from '@drydock/process';
import { conclude, fail, type Log, retryLater } from '@drydock/workflow/definition';
import type { Change, ComputeReason } from '../providers/compute.types';
import { ComputeError } from '../providers/compute-provider';

/** The Retry-After in seconds, if the provider's error has none. */
const retryAfterSecondsUsual = 30;

/** The 503 for any failure of a provider. The provider's own message goes only to the log. */
export const providerUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'provider' },
    retryAfterSeconds: (cause instanceof ComputeError ? cause.retryAfterSeconds : null) ?? retryAfterSecondsUsual,
    ...(cause instanceof Error ? { internal: cause.message, cause } : {}),
  });

/**
 * The time limit of a read from the provider during an API request: 10 s for a call and 4 s of waiting for the rate
 * limit. A listing of many pages gets no more time, because the service answers every request within 18.5 s.
 */
const readMsMax = 14_000;

/**
 * Reads from a provider during an API request, and turns every failure of the provider into {@link
 * providerUnavailable}. A read that takes too long is aborted, even between two pages.
 */
export async function readForRequest<T>(read: (signal: AbortSignal) => Promise<T>, withinMs = readMsMax): Promise<T> {
  const ends = timeLimit(withinMs);
  try {
    return await read(ends);
  } catch (error) {
    throw error instanceof ComputeError || ends.aborted ? providerUnavailable(error) : error;
  }
}

interface Failing {
  attempt: number;
  log: Log;
}

const codeOfReason: Partial<Record<ComputeReason, ProblemCode>> = {
  machine_not_found: 'server_not_operable',
  snapshot_not_found: 'snapshot_not_on_server',
  order_refused: 'order_refused',
  snapshot_not_ready: 'snapshot_not_ready',
  newer_snapshots: 'newer_snapshots_exist',
  not_running: 'server_not_running',
  guest_unresponsive: 'guest_unresponsive',
  incompatible: 'snapshot_incompatible',
  protected: 'rebuild_protected',
  unsupported: 'snapshots_unsupported',
};

/** Codes that replace `codeOfReason` for one kind of change. */
const codeOfChange: Partial<Record<Change['kind'], Partial<Record<ComputeReason, ProblemCode>>>> = {
  create: { incompatible: 'order_refused', snapshot_not_found: 'order_refused' },
  rebuild: { incompatible: 'order_refused', snapshot_not_found: 'order_refused', unsupported: 'rebuild_unsupported' },
  delete: { protected: 'server_protected', foreign: 'server_not_operable' },
  delete_snapshot: { protected: 'snapshot_protected' },
};

/**
 * The problem code for a provider's refusal of this kind of change. It is undefined if the customer can do nothing
 * about the refusal, for example if the provider refuses Drydock's credential.
 */
export const codeOf = (reason: ComputeReason, kind: Change['kind']): ProblemCode | undefined =>
  codeOfChange[kind]?.[reason] ?? codeOfReason[reason];

/**
 * Seconds until the next read of the same state. The pause grows by half with each attempt, from one second to at most
 * ten.
 */
export const pollSeconds = (attempt: number): number => Math.min(10, 1.5 ** Math.max(0, attempt - 1));

/**
 * Seconds until a call that failed for a transient reason is repeated. The provider's own number is used if there is
 * one. Otherwise the pause grows with each attempt to half a minute. Up to a quarter is added at random.
 */
const pauseSeconds = (
  { retryAfterSeconds }: ComputeError,
  attempt: number,
  random: () => number = Math.random,
): number => (retryAfterSeconds ?? Math.min(30, 2 * 1.5 ** Math.max(0, attempt - 1))) * (1 + random() / 4);

/**
 * The error of a step whose change the provider has refused. Nothing was accepted. If the refusal is transient, the
 * step is repeated later. Otherwise the workflow ends, and no step waits for staff.
 */
export function refusedSend(error: ComputeError, kind: Change['kind'], step: Failing): Error {
  if (error.mayPass) return retryLater({ seconds: pauseSeconds(error, step.attempt) });
  const code = codeOf(error.reason, kind);
  if (code !== undefined) return conclude(code, { internal: error.message });
  pageStaff(error, step);
  return conclude('dependency_unavailable', { extra: { dependency: 'provider' }, internal: error.message });
}

const pageStaff = ({ reason, message }: ComputeError, { log }: Failing): void =>
  log.error({ alarm: 'provider_refused', reason, internal: message }, 'the provider refuses us');

/** Whether the credential or the calls of Drydock caused the failure, so that only staff can repair it. */
const isOurs = ({ reason }: ComputeError): boolean => reason === 'credentials_refused' || reason === 'rejected';

/**
 * Waits for a read from the provider within a step. After a transient failure the step is repeated later. After a
 * permanent failure the step fails, because the state of the machine is unknown.
 */
export function readForStep<T>(work: Promise<T>, step: Failing): Promise<T> {
  return work.catch((error: unknown) => {
    if (!(error instanceof ComputeError)) throw error;
    if (isOurs(error)) pageStaff(error, step);
    throw error.mayPass || error.reason === 'ambiguous'
      ? retryLater({ seconds: pauseSeconds(error, step.attempt) })
      : fail('step_failed', { internal: error.message, cause: error });
  });
}
