import type { components } from './generated/openapi';

export interface DrydockOptions {
  /** The origin of the installation, such as https://api.example.com. */
  baseUrl: string;
  /** The API key: `dd_<live|test>_…`. */
  apiKey: string;
  /** Default: the `fetch` of the JavaScript runtime. */
  fetch?: typeof globalThis.fetch;
  /** The most repetitions of a failed request. A request is repeated only if that is safe. Default: 3. */
  retries?: number;
  /** Milliseconds that one attempt may take until its answer is received, or its stream begins. Default: 30,000. */
  timeoutMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
  /**
   * The `Idempotency-Key`. Drydock carries out calls with the same key only once. By default each call gets a new key,
   * if its operation accepts a key.
   */
  idempotencyKey?: string;
  /**
   * The result of an earlier call about the same resource. While the resource is unchanged, a read returns `known`
   * itself. Once it has changed, an update throws the problem `precondition_failed`.
   */
  known?: object;
}

export interface Request {
  method: string;
  /** The path with its query. */
  path: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

export type Problem = components['schemas']['Problem'];
export type ProblemCode = Problem['code'];

/** Drydock refused the call or failed: the answer is a problem document. Programs decide by `code`. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  readonly code: ProblemCode;
  /** The `X-Request-Id` of the answer. Support finds the request by this id. */
  readonly requestId: string;
  /** The invalid fields of the request. Empty if the refusal has another reason. */
  readonly errors: NonNullable<Problem['errors']>;
  /** The seconds after which the call may be sent again, by `Retry-After`. Null if the answer has no such header. */
  readonly retryAfterSeconds: number | null;
  /** The path of the workflow that was waited for. Null if the call itself was refused. */
  workflowPath: string | null = null;
  /** The whole problem document. Some codes have extra members, such as `workflow_id`. */
  readonly problem: Problem;

  constructor(problem: Problem, retryAfterSeconds: number | null = null) {
    super(`${problem.title}. ${problem.detail} (${problem.code}, request ${problem.request_id})`);
    this.status = problem.status;
    this.code = problem.code;
    this.requestId = problem.request_id;
    this.errors = problem.errors ?? [];
    this.retryAfterSeconds = retryAfterSeconds;
    this.problem = problem;
  }
}

/**
 * Drydock did not answer the call. Either `fetch` failed, and its error is the `cause`, or a proxy answered instead.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** The path of the workflow that was waited for, and that goes on. Null if the call itself was not answered. */
  workflowPath: string | null = null;
}

/** The longest `Retry-After` that is waited for. A spent allowance may ask for a day: a caller would seem to hang. */
const retryAfterSecondsMax = 60;

/**
 * Sends a request, and repeats a failed request if a repetition is safe and due within a minute. Throws ProblemError,
 * ConnectionError, or the reason of the signal.
 */
export async function send(options: DrydockOptions, request: Request): Promise<Response> {
  const { retries = 3 } = options;
  // The path may be the URL of another server, such as a forged `Location`. That server must not get the API key.
  if (new URL(request.path, options.baseUrl).origin !== new URL(options.baseUrl).origin)
    throw new TypeError(`${request.path} is no path of ${options.baseUrl}`);
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await tryOnce(options, request);
    if (outcome instanceof Response) return outcome;
    request.signal?.throwIfAborted();
    const { error, retryAfterSeconds } = outcome;
    const isSoon = retryAfterSeconds === null || retryAfterSeconds <= retryAfterSecondsMax;
    if (attempt >= retries || !isSoon || !isSafe(request, error)) throw error;
    await pause(retryAfterSeconds === null ? backoffMs(attempt) : retryAfterSeconds * 1_000, request.signal);
  }
}

/** The pauses in ms between the attempts of `sendUntilAnswered`. They grow, and each is at random up to 25 % longer. */
const awayMs = { first: 2_000, max: 30_000 };

/**
 * Repeats `send` until Drydock answers, so that a stream outlasts an update or an outage of the gateway. The request
 * must be safe to repeat. Throws the signal's reason, or a ProblemError that waiting does not change.
 */
export async function sendUntilAnswered(options: DrydockOptions, request: Request): Promise<Response> {
  for (let pauseMs = awayMs.first; ; pauseMs = Math.min(2 * pauseMs, awayMs.max)) {
    try {
      return await send(options, request);
    } catch (error) {
      request.signal?.throwIfAborted();
      const isAway = error instanceof ConnectionError;
      const isBusy = error instanceof ProblemError && [408, 429, 502, 503, 504].includes(error.status);
      if (!isAway && !isBusy) throw error;
      const retryAfterMs = isBusy ? 1_000 * (error.retryAfterSeconds ?? 0) : 0;
      await pause(Math.max(pauseMs * (1 + Math.random() / 4), retryAfterMs), request.signal);
    }
  }
}

interface Failure {
  error: ProblemError | ConnectionError;
  retryAfterSeconds: number | null;
}

async function tryOnce(
  { baseUrl, apiKey, fetch = globalThis.fetch, timeoutMs = 30_000 }: DrydockOptions,
  request: Request,
): Promise<Response | Failure> {
  const { method, path, body, headers, idempotencyKey, signal } = request;
  const attempt = new AbortController();
  const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: 'error',
      signal: signal === undefined ? attempt.signal : AbortSignal.any([signal, attempt.signal]),
    });
    if (!response.ok && response.status !== 304)
      return { error: await errorOf(response), retryAfterSeconds: retryAfterOf(response) };
    // The whole body is received here, so that a connection that breaks within the body counts as a failed request.
    if (!isStream(response)) await response.clone().text();
    return response;
  } catch (error) {
    return {
      error: new ConnectionError(`${method} ${path} was not answered: ${reasonOf(error)}`, { cause: error }),
      retryAfterSeconds: null,
    };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Returns the reason of a failed `fetch`. Node's own message is only "fetch failed", so the message of its cause is
 * used. If Node tried several addresses, the cause has a code but no message.
 */
function reasonOf(error: unknown): string {
  const { message, cause }: { message?: string; cause?: { message?: string; code?: string } } = Object(error);
  return cause?.message || cause?.code || message || String(error);
}

async function errorOf(response: Response): Promise<ProblemError | ConnectionError> {
  const text = await response.text();
  if (response.headers.get('content-type')?.startsWith('application/problem+json') === true) {
    const problem: Problem = JSON.parse(text);
    return new ProblemError(problem, retryAfterOf(response));
  }
  return new ConnectionError(
    `${response.url} answered ${response.status}, and not as Drydock does: ${text.slice(0, 200)}`,
  );
}

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true;

const retryAfterOf = ({ headers }: Response): number | null => {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : null;
};

/**
 * Tells whether a failed request may be repeated. A request that failed with 408 or 429 was not processed and may
 * always be repeated. After any other failure the request may have been processed, so a repetition must have no second
 * effect. `idempotency_in_flight` means that an earlier attempt with the same key is still being processed.
 */
function isSafe({ method, idempotencyKey }: Request, error: ProblemError | ConnectionError): boolean {
  if (error instanceof ProblemError && [408, 429].includes(error.status)) return true;
  const isRepeatable = method === 'GET' || method === 'PUT' || idempotencyKey !== undefined;
  if (error instanceof ProblemError)
    return isRepeatable && (error.status === 503 || error.code === 'idempotency_in_flight');
  return isRepeatable;
}

const backoffMs = (attempt: number): number => 250 * 2 ** attempt * (0.5 + Math.random());

/** Waits. Rejects with the reason of the signal when the signal is aborted. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
