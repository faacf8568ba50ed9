import { BrokenCircuitError, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { ComputeError } from '../compute-error';

/** Calls in a row without a usable answer that open the circuit, and how long it stays open before one may try. */
const failuresMax = 8;
const openMs = 5_000;

/** Nothing is sent to a provider that does not answer, one probe at a time aside: neither requests nor workers pile up before it. */
export interface Circuit {
  /** @throws ComputeError `unavailable` at once while it is open: then nothing was sent */
  guard<T>(call: () => Promise<T>): Promise<T>;
}

const isSilent = (error: Error): boolean =>
  error instanceof ComputeError && (error.reason === 'unavailable' || error.reason === 'ambiguous');

export function createCircuit(): Circuit {
  const policy = circuitBreaker(handleWhen(isSilent), { halfOpenAfter: openMs, breaker: new ConsecutiveBreaker(failuresMax) });
  return {
    guard: (call) =>
      policy.execute(call).catch((error: unknown) => {
        if (!(error instanceof BrokenCircuitError)) throw error;
        throw new ComputeError('unavailable', 'the provider has not answered for a while', {
          retryAfterSeconds: openMs / 1_000,
          cause: error,
        });
      }),
  };
}
