import type { KeyObject } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { ServiceName } from '@drydock/contracts/platform/endpoint';
import { Problem, problem } from '@drydock/contracts/platform/problem';
import { scaled, timeLimit } from '@drydock/process';
import { tokenKey } from '@drydock/service/access';
import { answerWithinMs } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { BrokenCircuitError, CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { type Dispatcher, Pool } from 'undici';
import type { UpstreamConfig } from './config';

/**
 * Thrown if a process could not be reached, or if the connection was lost before it answered. `mayBeBegun` is true if
 * the request may have been sent, so that it may have taken effect.
 */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  readonly mayBeBegun: boolean;

  constructor(mayBeBegun: boolean, cause: unknown) {
    super(mayBeBegun ? 'connection lost' : 'not reached', { cause });
    this.mayBeBegun = mayBeBegun;
  }
}

/**
 * Milliseconds for which a replica that has failed is tried last. They exceed the pause between two probes, so that a
 * replica that fails each probe stays last.
 */
const outMs = 5_000;
const probeEveryMs = 1_000;
/** The time limit of a probe, so that an unanswered probe does not keep its connection for longer. */
const probeMs = 1_000;

/** One URL of a service. It leads to a process of the service, or to a balancer in front of several. */
export class Replica {
  readonly url: string;
  readonly options: Pool.Options;
  pool: Pool;
  private outUntilMs = 0;

  constructor(url: string, options: Pool.Options) {
    this.url = url;
    this.options = options;
    this.pool = new Pool(url, options);
  }

  get isOut(): boolean {
    return performance.now() < this.outUntilMs;
  }

  leaveOut(): void {
    this.outUntilMs = performance.now() + outMs;
  }

  takeBack(): void {
    this.outUntilMs = 0;
  }

  /**
   * Must be called with the pool of an answer that has `Connection: close`, which a service sends while it stops. New
   * requests go to other replicas or new connections, and running requests are completed. The idle connections are
   * closed, because a request on one of them would be lost if the service closed the connection at the same moment.
   */
  leave(pool: Pool): void {
    if (pool !== this.pool) return;
    this.leaveOut();
    this.pool = new Pool(this.url, this.options);
    void pool.close();
  }
}

interface Replicas {
  /**
   * Runs `call` on one replica after the other until one answers. Each replica is tried once. A single replica is tried
   * twice, because its address may belong to several processes. A call is repeated only if it was certainly not begun,
   * or if `isSafe` is true. `leftMs` is the time that is left for the attempt.
   */
  run<T>(call: (replica: Replica, leftMs: number) => Promise<T>, isSafe: boolean): Promise<T>;
  /** Resolves when one of the replicas is ready. Rejects if none is. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes the replicas of a service. Each call starts with the next replica (round robin). Replicas that failed lately
 * are tried last. A call begins no further attempt once `withinMs` have passed since its start.
 */
function createReplicas(urls: readonly string[], options: Pool.Options, withinMs: number): Replicas {
  const replicas = urls.map((url) => new Replica(url, options));
  let turn = 0;
  const inOrder = (): readonly Replica[] => {
    if (replicas.length === 1) return [...replicas, ...replicas];
    turn = (turn + 1) % replicas.length;
    const turned = [...replicas.slice(turn), ...replicas.slice(0, turn)];
    return turned.sort((one, other) => Number(one.isOut) - Number(other.isOut));
  };
  const probe = async (): Promise<void> => {
    await Promise.any(replicas.map(probeReplica));
  };
  // A single replica is not probed at intervals, because no result could send a request elsewhere.
  const stopProbing =
    replicas.length > 1 ? repeat(() => Promise.allSettled(replicas.map(probeReplica)), probeEveryMs) : () => undefined;
  return {
    run: async (call, isSafe) => {
      const endsAtMs = performance.now() + withinMs;
      let last: unknown;
      for (const replica of inOrder()) {
        const leftMs = Math.ceil(endsAtMs - performance.now());
        if (leftMs <= 0) break;
        try {
          return await call(replica, leftMs);
        } catch (error) {
          if (!(error instanceof UnansweredError)) throw error;
          replica.leaveOut();
          if (error.mayBeBegun && !isSafe) throw error;
          last = error;
        }
      }
      throw last;
    },
    probe,
    close: async () => {
      stopProbing();
      await Promise.all(replicas.map(({ pool }) => pool.close()));
    },
  };
}

/** Sends a request of the gateway's own, which is safe to repeat. */
export async function requestOf(
  replica: Replica,
  options: Dispatcher.RequestOptions & { signal: AbortSignal },
): Promise<{ status: number; text: string }> {
  const { pool } = replica;
  try {
    const response = await pool.request(options);
    if (response.headers['connection'] === 'close') replica.leave(pool);
    return { status: response.statusCode, text: await response.body.text() };
  } catch (error) {
    throw options.signal.aborted ? error : new UnansweredError(true, error);
  }
}

/** Asks a replica whether it is ready. A replica that is not ready gets no request while another replica is ready. */
async function probeReplica(replica: Replica): Promise<void> {
  try {
    const { status } = await requestOf(replica, {
      method: 'GET',
      path: '/readyz',
      signal: timeLimit(scaled(probeMs)),
    });
    if (status !== 200) throw new Error(`${replica.url} answered ${status}`);
    replica.takeBack();
  } catch (error) {
    replica.leaveOut();
    throw error;
  }
}

/** Repeats `run`, each time `everyMs` after the previous run has ended. The timer does not keep the process alive. */
function repeat(run: () => Promise<unknown>, everyMs: number): () => void {
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    timer = setTimeout(() => void run().then(() => timer !== undefined && next()), everyMs).unref();
  };
  next();
  return () => {
    clearTimeout(timer);
    timer = undefined;
  };
}

export interface UpstreamLimits {
  connectMs: number;
  /** Milliseconds until the headers of an answer. No service takes as long. */
  headersMs: number;
  /** The most milliseconds between two pieces of a body. */
  bodyMs: number;
  /** The most milliseconds without data on a stream. Streams send a heartbeat every 15 s. */
  streamMs: number;
  /**
   * The most connections to each URL of the service. They suffice for all requests (`inFlightMax`) and all event
   * streams (`streamsMax`) at once. With fewer, requests would queue in undici's pool, where nothing counts them.
   */
  connections: number;
  /**
   * The number of successive failures that opens the circuit breaker. After `openMs` one read or probe may try again.
   */
  failuresMax: number;
  openMs: number;
}

export const upstreamLimits: UpstreamLimits = {
  connectMs: scaled(2_000),
  headersMs: scaled(answerWithinMs + 1_500),
  bodyMs: scaled(10_000),
  streamMs: scaled(30_000),
  connections: 512,
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
   * Runs a call unless the circuit breaker is open. A problem is thrown unchanged, and every other error becomes 503
   * `dependency_unavailable`. `explain` is given for a write. If it returns a text, this text replaces the usual detail
   * of that 503. After an outage, one call tries the service while all others are refused. A write may take ten
   * seconds, so a probe tries the service in place of a write.
   */
  guard<T>(call: () => Promise<T>, explain?: (error: unknown) => string | undefined): Promise<T>;
  close(): Promise<void>;
}

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
      // While one request tries, cockatiel would let the other requests wait and then send all of them at once. So they
      // are refused here.
      if (breaker.state === CircuitState.HalfOpen) throw unavailable(name, { internal: 'circuit half open' });
      try {
        if (explain !== undefined && breaker.state === CircuitState.Open) await breaker.execute(replicas.probe);
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
