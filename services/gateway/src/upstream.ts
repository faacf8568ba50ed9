import type { KeyObject } from 'node:crypto';
import type { ServiceName } from '@drydock/contracts/platform/endpoint';
import { Problem, problem } from '@drydock/contracts/platform/problem';
import { scaled } from '@drydock/process';
import { tokenKey } from '@drydock/service/access';
import { answerWithinMs } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { BrokenCircuitError, CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import type { UpstreamConfig } from './config';
import { createReplicas, type Replicas } from './replicas';

export interface UpstreamLimits {
  connectMs: number;
  /** Milliseconds until the headers of an answer. No service takes as long. */
  headersMs: number;
  /** The most milliseconds between two pieces of a body. */
  bodyMs: number;
  /** The most milliseconds between two events of a stream. Streams send a beat every 15 s. */
  streamMs: number;
  /**
   * The number of connections is at least the number of places. Otherwise requests would queue where nothing counts
   * them.
   */
  connections: number;
  /** The number of successive failures that opens the circuit breaker. After `openMs` one request may try again. */
  failuresMax: number;
  openMs: number;
}

export const upstreamLimits: UpstreamLimits = {
  connectMs: scaled(2_000),
  headersMs: scaled(answerWithinMs + 1_500),
  bodyMs: scaled(10_000),
  streamMs: scaled(30_000),
  connections: 256,
  failuresMax: 5,
  openMs: 2_000,
};

/**
 * A service behind the gateway: its processes with the connections to them, its signing key and its circuit breaker.
 */
export interface Upstream {
  name: ServiceName;
  replicas: Replicas;
  key: KeyObject;
  limits: UpstreamLimits;
  /**
   * Runs a call unless the circuit breaker is open. Every error without an answer becomes 503 `dependency_unavailable`;
   * problems pass unchanged. `explain` gives another detail for an error if the usual one would not be true.
   */
  guard<T>(call: () => Promise<T>, explain?: (error: unknown) => string | undefined): Promise<T>;
  close(): Promise<void>;
}

/** Retry-After for callers of an unreachable service. */
const retryAfterSeconds = 5;

export const unavailable = (
  dependency: ServiceName,
  details: { cause?: unknown; internal?: string; detail?: string } = {},
): Problem => problem('dependency_unavailable', { extra: { dependency }, retryAfterSeconds, ...details });

export function createUpstream(name: ServiceName, config: UpstreamConfig, log: Log, limits = upstreamLimits): Upstream {
  const options = {
    connections: limits.connections,
    pipelining: 1,
    headersTimeout: limits.headersMs,
    bodyTimeout: limits.bodyMs,
    connect: { timeout: limits.connectMs },
  };
  const replicas = createReplicas(config.urls, options, limits.headersMs);
  // A problem counts as an answer, because a service that refuses is alive.
  const breaker = circuitBreaker(
    handleWhen((error) => !(error instanceof Problem)),
    { halfOpenAfter: limits.openMs, breaker: new ConsecutiveBreaker(limits.failuresMax) },
  );
  breaker.onBreak(() => log.error({ dependency: name }, 'circuit open'));
  breaker.onReset(() => log.info({ dependency: name }, 'circuit closed'));
  return {
    name,
    replicas,
    key: tokenKey(config.tokenSecret),
    limits,
    guard: async (call, explain) => {
      // While one request tries, cockatiel would make the others wait for it and then let all of them go at once.
      if (breaker.state === CircuitState.HalfOpen) throw unavailable(name, { internal: 'circuit half open' });
      try {
        return await breaker.execute(call);
      } catch (error) {
        if (error instanceof Problem) throw error;
        if (error instanceof BrokenCircuitError) throw unavailable(name, { internal: 'circuit open' });
        const detail = explain?.(error);
        throw unavailable(name, { cause: error, ...(detail === undefined ? {} : { detail }) });
      }
    },
    close: () => replicas.close(),
  };
}
