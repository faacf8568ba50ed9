import { BrokenCircuitError, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { ComputeError } from '../compute-provider';

/** The number of calls in a row without a usable answer that opens the circuit. `openMs` later, one call may try. */
const failuresMax = 8;
const openMs = 5_000;

/**
 * Sends nothing to a provider that does not answer, except for one probe at a time, so that neither requests nor
 * workers pile up. There is a circuit for each part of the provider; a call whose part is null passes them all. @throws
 * ComputeError `unavailable` at once while the circuit is open: then nothing was sent
 */
export type Guard = <T>(part: string | null, call: () => Promise<T>) => Promise<T>;

type Circuit = <T>(call: () => Promise<T>) => Promise<T>;

const isSilent = (error: Error): boolean =>
  error instanceof ComputeError && (error.reason === 'unavailable' || error.reason === 'ambiguous');

export function openCircuits(): Guard {
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
