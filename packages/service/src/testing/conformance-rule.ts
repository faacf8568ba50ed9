import assert from 'node:assert/strict';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import type { Caller } from '../access/internal-token';
import type { ServiceAnswer } from './call-service';
import { refusalOf } from './problem';
import type { CallOptions, ServiceApi } from './service-api';

/** Records of one caller, on which operations can be tried. */
export interface Things {
  /** The ids of the records, by path parameter. */
  params: Readonly<Record<string, string>>;
  /** The values that name the records in a body, by field. */
  fields?: Readonly<Record<string, unknown>>;
}

/** A running service, and ways to make records for its operations. */
export interface ConformanceWorld {
  call(method: string, path: string, options: CallOptions & { caller: Caller }): Promise<ServiceAnswer>;
  /** The caller with every permission. */
  owner: Caller;
  /**
   * A caller of another organisation, and a caller of the same organisation in the other mode. Empty if the service
   * has no such callers.
   */
  strangers: readonly Caller[];
  /**
   * Makes a caller with every permission, of an organisation that has no records yet. Without this function, checks use
   * an organisation that the service does not know.
   */
  newOwner?(): Promise<Caller>;
  /** Makes new records for `caller`, in a state in which the operation succeeds. */
  makeThings(caller: Caller, endpoint: EndpointDefinition): Promise<Things>;
  /**
   * The answer of each operation that cannot succeed without a worker or a provider, such as `503
   * dependency_unavailable`. Every other operation has to succeed, so that no check is left out silently.
   */
  cannotSucceed: Readonly<Record<string, string>>;
  /**
   * Operations that are not in `cannotSucceed`, but succeed only after they have waited in vain for a worker, an agent
   * or a gateway that does not run.
   */
  waiting?: readonly string[];
}

export interface Rule {
  name: string;
  appliesTo(endpoint: EndpointDefinition): boolean;
  check(world: ConformanceWorld, endpoint: EndpointDefinition, things: Things): Promise<void>;
}

/** The parts of a request that differ from its contract’s example. */
export interface Sent {
  params?: Readonly<Record<string, string>>;
  search?: string;
  caller?: Caller;
  body?: unknown;
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

export const bodyOf = ({ example }: EndpointDefinition, { fields = {} }: Things): object | undefined =>
  example === undefined
    ? undefined
    : Object.fromEntries(Object.entries(example).map(([name, value]) => [name, name in fields ? fields[name] : value]));

/** Calls the operation with the example of its contract. The parts in `sent` replace those of the example. */
export function ask(
  world: ConformanceWorld,
  endpoint: EndpointDefinition,
  things: Things,
  sent: Sent = {},
): Promise<ServiceAnswer> {
  const { params = {}, search = '', caller = world.owner, idempotencyKey, headers = {} } = sent;
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_placeholder, name: string) => {
    const value = params[name] ?? things.params[name];
    assert.ok(value !== undefined, `the world of this suite has no ${name}: add one to its makeThings`);
    return value;
  });
  const body = 'body' in sent ? sent.body : bodyOf(endpoint, things);
  return world.call(endpoint.method, `${path}${search}`, {
    caller,
    body,
    headers,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });
}

export const assertRefused = (answer: ServiceAnswer, refusal: string, what: string): void =>
  assert.equal(refusalOf(answer), refusal, `${what}: ${answer.text}`);

export const canSucceed = (world: ConformanceWorld, { id }: EndpointDefinition): boolean =>
  world.cannotSucceed[id] === undefined;

export const assertSucceeded = ({ response }: EndpointDefinition, { status, text }: ServiceAnswer): void =>
  assert.equal(status, response.status, text);

export function hasPages({ query }: EndpointDefinition): boolean {
  return query !== undefined && 'cursor' in query.shape;
}

/** Sets metadata that contains characters with a meaning in JSON and SQL. */
export const giveMetadata = (
  api: ServiceApi,
  table: 'sites' | 'servers' | 'managed_databases',
  id: string,
): Promise<unknown> =>
  api.rows(
    `UPDATE ${table} SET metadata = jsonb_build_object('contract', id, 'a.b', '{"x" = [1], '' %}') WHERE id = $1`,
    [id],
  );
