import type { components, operations } from './generated/openapi';
import { routes } from './generated/routes';
import {
  type CallOptions,
  ConnectionError,
  type DrydockOptions,
  ProblemError,
  pause,
  type Request,
  send,
  sendUntilAnswered,
} from './send';

export type { components } from './generated/openapi';
export {
  type CallOptions,
  ConnectionError,
  type DrydockOptions,
  type Problem,
  type ProblemCode,
  ProblemError,
} from './send';
export { verifyWebhook, type WebhookMessage, WebhookVerificationError } from './webhook';

type Routes = typeof routes;
type Success<Responses> = Responses[Extract<keyof Responses, 200 | 201 | 202>];
type JsonOf<Answer> = [Answer] extends [never]
  ? undefined
  : Answer extends { content: { 'application/json': infer Body } }
    ? Body
    : undefined;
type BodyOf<Operation> = Operation extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { body: Body }
  : Operation extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? { body?: Body }
    : object;
type Given<Member extends string, Parameters> = Parameters extends { [Name in Member]: infer Value extends object }
  ? { [Name in Member]: Value }
  : Parameters extends { [Name in Member]?: infer Value }
    ? [Value] extends [undefined]
      ? object
      : { [Name in Member]?: Value }
    : object;

type OperationId = keyof operations & keyof Routes;
type InputOf<Id extends OperationId> = Given<'path', operations[Id]['parameters']> &
  Given<'query', operations[Id]['parameters']> &
  BodyOf<operations[Id]>;
/** The result of a call: the JSON of its answer. Undefined for an answer without JSON. */
type ResultOf<Id extends OperationId> = JsonOf<Success<operations[Id]['responses']>>;
type Arguments<Id extends OperationId, Options> =
  object extends InputOf<Id> ? [input?: InputOf<Id>, options?: Options] : [input: InputOf<Id>, options?: Options];
type ItemOf<Result> = Result extends { data: (infer Item)[]; page: unknown } ? Item : never;

type CallableId = { [Id in OperationId]: Routes[Id]['isStream'] extends true ? never : Id }[OperationId];
type ListId = { [Id in CallableId]: [ItemOf<ResultOf<Id>>] extends [never] ? never : Id }[CallableId];
type LongId = { [Id in CallableId]: 202 extends keyof operations[Id]['responses'] ? Id : never }[CallableId];

export type Workflow = components['schemas']['Workflow'];

/**
 * A workflow did not succeed. `workflow.error` has the reason, or is null. A workflow with the status `needs_attention`
 * waits for Drydock's staff.
 */
export class WorkflowError extends Error {
  override readonly name = 'WorkflowError';
  readonly workflow: Workflow;
  /** The path of the workflow, for `wait`. Null if the error does not come from the client. */
  readonly workflowPath: string | null;

  constructor(workflow: Workflow, workflowPath: string | null = null) {
    super(
      workflow.error === null
        ? `${workflow.kind} ended as ${workflow.status}`
        : `${workflow.error.title}. ${workflow.error.detail}`,
    );
    this.workflow = workflow;
    this.workflowPath = workflowPath;
  }
}

/** A workflow did not end within `timeoutMs`. The workflow continues, and `wait` can be called again. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
  readonly workflow: Workflow;
  /** The path of the workflow, for `wait`. */
  readonly workflowPath: string;

  constructor(workflow: Workflow, workflowPath: string) {
    super(`${workflow.kind} is ${workflow.status} at ${workflow.progress} %; it goes on`);
    this.workflow = workflow;
    this.workflowPath = workflowPath;
  }
}

export interface WaitOptions extends CallOptions {
  /** Called with the first state of the workflow, and with each later state that differs from the one before. */
  onProgress?: (workflow: Workflow) => void;
  /** Milliseconds after which waiting ends with a WaitTimeoutError. The workflow continues. Default: no limit. */
  timeoutMs?: number;
}

export interface FinishOptions<Answer> extends WaitOptions {
  /**
   * Called with the answer of the call and the path of its workflow, before the wait. The answer may hold a value that
   * no later answer repeats, such as a password. Waiting begins when the returned promise, if any, is resolved.
   */
  onAccepted?: (answer: Answer, workflowPath: string) => unknown;
}

/** An operation whose answer has a password must be given `onAccepted`: the result of `finish` has no password. */
type FinishArguments<Id extends LongId> =
  ResultOf<Id> extends { password: string }
    ? [
        input: InputOf<Id>,
        options: FinishOptions<ResultOf<Id>> & Required<Pick<FinishOptions<ResultOf<Id>>, 'onAccepted'>>,
      ]
    : Arguments<Id, FinishOptions<ResultOf<Id>>>;

/**
 * The operations of docs/openapi.json, by operationId. An operation throws a ProblemError, a ConnectionError, or the
 * reason of its signal. It throws a TypeError for input that cannot be sent.
 */
export type Drydock = {
  readonly [Id in CallableId]: (...given: Arguments<Id, CallOptions>) => Promise<ResultOf<Id>>;
} & {
  /** Yields the items of a list. A page is requested when its first item is needed. */
  readonly all: {
    readonly [Id in ListId]: (...given: Arguments<Id, CallOptions>) => AsyncGenerator<ItemOf<ResultOf<Id>>, void>;
  };
  /**
   * Starts a workflow and waits until it has succeeded. Throws WorkflowError if the workflow does not succeed, and
   * WaitTimeoutError if it takes longer than `timeoutMs`. Each of the client's errors after the acceptance has a
   * `workflowPath`. Call `wait` with that path: a second call of the operation would ask for the work again.
   */
  readonly finish: { readonly [Id in LongId]: (...given: FinishArguments<Id>) => Promise<Workflow> };
  /**
   * Waits for a workflow that was accepted before. `workflowPath` is like `/v1/sites/{siteId}/workflows/{workflowId}`.
   */
  readonly wait: (workflowPath: string, options?: WaitOptions) => Promise<Workflow>;
  /**
   * Yields the states of a workflow, as they change, until its end. A broken stream is resumed after its last state,
   * however long Drydock does not answer. Yields nothing if the workflow has already ended.
   */
  readonly watch: (workflowPath: string, options?: Pick<CallOptions, 'signal'>) => AsyncGenerator<Workflow, void>;
  /**
   * Yields the events of the organisation, as they happen, until the signal is aborted. A broken stream is resumed
   * after its last event, however long Drydock does not answer, so that no event is lost.
   */
  readonly events: (options?: EventOptions) => AsyncGenerator<Event, never>;
};

export type Event = components['schemas']['Event'];

export interface EventOptions extends Pick<CallOptions, 'signal'> {
  /** Types of events, separated by commas, such as `workflow.*,api_key.create`. Default: all. */
  type?: string;
  /** The path of a resource. Only its events are sent. Default: all events. */
  resource?: string;
  /** The id of the last event that the caller has. Default: only new events. */
  after?: string;
}

interface Input {
  path?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  body?: unknown;
}

export function createDrydock(options: DrydockOptions): Drydock {
  // For a key with other characters, `fetch` may throw an error that quotes the header, and with it the key.
  if (!/^[\x21-\x7e]+$/.test(options.apiKey))
    throw new TypeError('apiKey is no key: it has a character that no header can carry, or none at all');
  const ids = Object.keys(routes).filter((id): id is OperationId => id in routes);
  const callable = ids.filter((id) => !routes[id].isStream);
  const each = <Value>(make: (id: OperationId) => Value) => Object.fromEntries(callable.map((id) => [id, make(id)]));
  const calls = {
    ...each(
      (id) => async (input?: Input, own?: CallOptions) =>
        bodyOf(await send(options, requestOf(id, input, own)), own?.known),
    ),
    all: each((id) => (input?: Input, own?: CallOptions) => pages(options, id, input, own)),
    finish: each((id) => async (input?: Input, own: FinishOptions<unknown> = {}) => {
      const accepted = await send(options, requestOf(id, input, own));
      const path = workflowPathOf(accepted);
      await own.onAccepted?.(await bodyOf(accepted), path);
      return wait(options, path, own);
    }),
    wait: (path: string, own?: WaitOptions) => wait(options, path, own),
    watch: (path: string, own?: Pick<CallOptions, 'signal'>) => watch(options, path, own?.signal),
    events: (own?: EventOptions) => events(options, own),
  };
  // TypeScript cannot derive that `calls` is a Drydock. Both are made from the operations of docs/openapi.json.
  return calls as unknown as Drydock;
}

/** The ETags of answers. The key is the value that the call returned. */
const etags = new WeakMap<object, string>();

async function bodyOf(response: Response, known?: object): Promise<unknown> {
  if (response.status === 304) return known;
  if (response.status === 204) return undefined;
  const body: object = JSON.parse(await response.text());
  const etag = response.headers.get('etag');
  if (etag !== null) etags.set(body, etag);
  return body;
}

/**
 * Returns the header that makes a call depend on the known state of a resource. Throws if `known` has no ETag, because
 * an update without the header would overwrite what others have changed since.
 */
function conditionOf(method: string, known: object | undefined): Record<string, string> {
  if (known === undefined) return {};
  const etag = etags.get(known);
  if (etag === undefined)
    throw new TypeError('known is nothing that a call of this module gave with an ETag, or is a copy of it');
  if (method === 'GET') return { 'if-none-match': etag };
  if (method === 'PATCH') return { 'if-match': etag };
  throw new TypeError(`a ${method} is not made dependent on what is known`);
}

function requestOf(
  id: OperationId,
  { path = {}, query = {}, body }: Input = {},
  { signal, idempotencyKey, known }: CallOptions = {},
): Request {
  const { method, path: template, takesKey } = routes[id];
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = path[name];
    if (value === undefined || value === '') throw new TypeError(`${id} needs path.${name}`);
    // A URL parser resolves `.` and `..`, even if they are encoded. The URL would then be that of another resource.
    if (value === '.' || value === '..') throw new TypeError(`path.${name} of ${id} cannot be ${value}`);
    return encodeURIComponent(value);
  });
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  return {
    method,
    path: search.size === 0 ? filled : `${filled}?${search.toString()}`,
    body,
    headers: conditionOf(method, known),
    idempotencyKey: takesKey ? (idempotencyKey ?? crypto.randomUUID()) : undefined,
    signal,
  };
}

async function* pages(
  options: DrydockOptions,
  id: OperationId,
  input: Input = {},
  own?: CallOptions,
): AsyncGenerator<unknown, void> {
  let cursor: string | null | undefined;
  do {
    const query = { ...input.query, ...(typeof cursor === 'string' ? { cursor } : {}) };
    const response = await send(options, requestOf(id, { ...input, query }, own));
    const page: { data: unknown[]; page: { next_cursor: string | null } } = JSON.parse(await response.text());
    yield* page.data;
    cursor = page.page.next_cursor;
  } while (cursor !== null);
}

function workflowPathOf({ headers, url }: Response): string {
  const location = headers.get('location');
  if (location === null || !location.includes('/workflows/')) throw new Error(`${url} names no workflow to wait for`);
  return location;
}

/**
 * The pause in milliseconds between two requests for the state of a workflow. It grows, so that a long workflow costs
 * few requests.
 */
const lookMs = { first: 250, max: 2_000 };

async function wait(
  options: DrydockOptions,
  path: string,
  { onProgress, timeoutMs, signal }: WaitOptions = {},
): Promise<Workflow> {
  const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs;
  let seen = '';
  for (let betweenMs = lookMs.first; ; betweenMs = Math.min(betweenMs * 1.5, lookMs.max)) {
    const response = await send(options, { method: 'GET', path, signal }).catch((error: unknown) => {
      if (error instanceof ProblemError || error instanceof ConnectionError) error.workflowPath = path;
      throw error;
    });
    const state = await response.text();
    const workflow: Workflow = JSON.parse(state);
    if (state !== seen) onProgress?.(workflow);
    seen = state;
    if (workflow.status === 'succeeded') return workflow;
    if (workflow.status === 'failed' || workflow.status === 'needs_attention') throw new WorkflowError(workflow, path);
    if (Date.now() >= deadline) throw new WaitTimeoutError(workflow, path);
    await pause(Math.min(betweenMs, deadline - Date.now()), signal);
  }
}

async function* watch(options: DrydockOptions, path: string, signal?: AbortSignal): AsyncGenerator<Workflow, void> {
  let last: string | undefined;
  for (let open = send; ; open = sendUntilAnswered) {
    const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
    const response = await open(options, { method: 'GET', path: `${path}/events`, headers, signal });
    // 204 says that no further event comes.
    if (response.status === 204 || response.body === null) return;
    const before = last;
    for await (const { id, data } of eventsOf(response.body)) {
      last = id;
      const workflow: Workflow = JSON.parse(data);
      yield workflow;
    }
    signal?.throwIfAborted();
    if (last === before) await pause(lookMs.max, signal);
  }
}

async function* events(
  options: DrydockOptions,
  { type, resource, after, signal }: EventOptions = {},
): AsyncGenerator<Event, never> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ type, resource })) if (value !== undefined) search.set(name, value);
  let last = after;
  for (let open = send; ; open = sendUntilAnswered) {
    const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
    const path = search.size === 0 ? '/v1/events/stream' : `/v1/events/stream?${search.toString()}`;
    const response = await open(options, { method: 'GET', path, headers, signal });
    const before = last;
    if (response.body !== null)
      for await (const { id, name, data } of eventsOf(response.body)) {
        last = id;
        if (name === 'ready') continue;
        const event: Event = JSON.parse(data);
        yield event;
      }
    signal?.throwIfAborted();
    if (last === before) await pause(lookMs.max, signal);
  }
}

/**
 * Parses server-sent events (HTML standard) whose lines end with a line feed. A block without data only keeps the
 * connection alive. The iteration ends when the stream ends or the connection breaks. An event that was cut off is not
 * yielded.
 */
async function* eventsOf(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ id: string; name: string; data: string }, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let unread = '';
  try {
    for (;;) {
      const chunk = await reader.read().catch(() => undefined);
      if (chunk?.value === undefined) return;
      const blocks = (unread + decoder.decode(chunk.value, { stream: true })).split('\n\n');
      unread = blocks.pop() ?? '';
      for (const block of blocks) {
        const valuesOf = (field: string): string[] =>
          block
            .split('\n')
            .flatMap((line) => (line.startsWith(`${field}:`) ? [line.slice(field.length + 1).replace(/^ /, '')] : []));
        const data = valuesOf('data').join('\n');
        if (data !== '') yield { id: valuesOf('id').at(-1) ?? '', name: valuesOf('event').at(-1) ?? '', data };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
