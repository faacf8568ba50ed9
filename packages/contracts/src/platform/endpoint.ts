import type { z } from 'zod';
import type { Permission } from './permissions';
import type { ProblemCode, ProblemCodeOf } from './problems';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type ServiceName = 'keys' | 'hosting' | 'compute' | 'agency' | 'databases';

/**
 * A path parameter that names a record of the caller. `schema` is the form of the id. `notFound` is the 404 for a value
 * that is malformed, or names no record of the caller.
 */
export interface OwnedParameter {
  schema: z.ZodType<string>;
  notFound: ProblemCodeOf<404>;
  /**
   * Whether staff use the parameter to name a record of any organisation. Another service has these records, so the
   * service cannot know whether the record exists. Only a malformed value is answered with 404. The default is false.
   */
  isAnybodys?: true;
}

/**
 * A path parameter that names an object of the caller's record, such as a provider's snapshot of a server. A value that
 * names no such object is answered with 422. The handler gets '' for a malformed value, and must not send '' to another
 * system.
 */
export interface NamedParameter {
  schema: z.ZodType<string>;
  notNamed: ProblemCodeOf<422>;
}

export type PathParameter = OwnedParameter | NamedParameter;

export interface EndpointDefinition {
  /** The operationId in OpenAPI. */
  id: string;
  service: ServiceName;
  method: Method;
  /** The path, with `{name}` for each path parameter. */
  path: string;
  summary: string;
  /**
   * Help for a decision about the call, in addition to the summary: what it overwrites, what continues meanwhile, and
   * whether it can be undone. It is written in whole sentences.
   */
  about?: string;
  /** The permissions that the caller needs, all of them. With `[]`, every key may call. */
  permissions: readonly Permission[];
  params?: Record<string, PathParameter>;
  query?: z.ZodObject;
  /** The schema of the body. Without a schema the endpoint ignores the body of a call. */
  body?: z.ZodObject;
  /**
   * A body that the endpoint accepts on every installation. The documentation shows it. The conformance suite sends it
   * with other ids.
   */
  example?: Readonly<Record<string, unknown>>;
  /**
   * Set if the operation cannot succeed in the demo of `npm start`, because it needs a state that nothing in the demo
   * has. `problem` is the answer there, and `because` the reason.
   */
  inDemo?: { problem: ProblemCode; because: string };
  /**
   * The answer on success. `schema` is the schema of the body, or of each event's data in a stream. `eventLines` are
   * the lines before an event's data in the documentation's example.
   */
  response: {
    status: 200 | 201 | 202 | 204;
    schema?: z.ZodType;
    contentType?: 'text/event-stream';
    eventLines?: string;
  };
  /** The codes of this endpoint, in addition to those that every endpoint can answer (see {@link problemCodesOf}). */
  problems: readonly ProblemCode[];
  /**
   * Whether the specification lists every status of this endpoint. The list has no 400 and no 415, so a body that is
   * not JSON is answered with 422. The default is false.
   */
  hasClosedStatuses?: true;
  /** The quota that a call counts against. The specification exempts its endpoints 5, 9 and 10. */
  quota: 'read' | 'write' | 'mint' | 'exempt';
  /** Whether an Idempotency-Key is accepted. Only POSTs accept a key. */
  idempotency: 'accepted' | 'ignored';
  /**
   * Whether an undeclared query parameter is refused. It is `ignored` if the specification lists every status of the
   * endpoint and the list has no 422.
   */
  undeclaredQuery: 'refused' | 'ignored';
  tags: readonly string[];
}

/** Adds the defaults of `quota`, `idempotency` and `undeclaredQuery`, and keeps the literal types of a definition. */
export const endpoint = <
  const Definition extends Omit<EndpointDefinition, DerivedMember> & Partial<EndpointDefinition>,
>(
  definition: Definition,
): Definition & Pick<EndpointDefinition, DerivedMember> => ({
  quota: definition.method === 'GET' ? 'read' : 'write',
  idempotency: definition.method === 'POST' ? 'accepted' : 'ignored',
  undeclaredQuery: 'refused',
  ...definition,
});

type DerivedMember = 'quota' | 'idempotency' | 'undeclaredQuery';

/** Whether the answer has an ETag. Every 200 to a GET or a PATCH has one, except an event stream. */
export const hasEntityTag = ({ method, response }: EndpointDefinition): boolean =>
  (method === 'GET' || method === 'PATCH') && response.status === 200 && response.contentType === undefined;

export const ownProblemCodesOf = ({ params = {}, problems }: EndpointDefinition): ProblemCode[] => [
  ...new Set<ProblemCode>([
    ...Object.values(params).map((parameter) => ('notFound' in parameter ? parameter.notFound : parameter.notNamed)),
    ...problems,
  ]),
];

/**
 * Every problem code that the endpoint may answer: the codes of all endpoints, the codes that this endpoint declares,
 * and the codes that follow from its quota, permissions, body and other members.
 */
export function problemCodesOf(definition: EndpointDefinition): ProblemCode[] {
  const codes = new Set<ProblemCode>([
    'unauthenticated',
    'dependency_unavailable',
    'overloaded',
    'internal_error',
    ...ownProblemCodesOf(definition),
  ]);
  if (definition.quota !== 'exempt') codes.add('rate_limited');
  if (definition.response.contentType === 'text/event-stream') codes.add('too_many_streams');
  if (definition.permissions.length > 0) codes.add('permission_denied');
  if (definition.undeclaredQuery === 'refused') codes.add('invalid_request');
  if (definition.query !== undefined && 'cursor' in definition.query.shape)
    codes.add('invalid_limit').add('invalid_cursor');
  if (definition.body !== undefined) {
    const { notJson, otherType } = bodyRefusalsOf(definition);
    for (const code of ['invalid_request', notJson, otherType, 'body_too_large'] as const) codes.add(code);
  }
  if (definition.method === 'PATCH') codes.add('precondition_failed');
  if (definition.idempotency === 'accepted') for (const code of idempotencyCodes) codes.add(code);
  return [...codes];
}

export interface BodyRefusals {
  notJson: 'malformed_json' | 'invalid_json';
  otherType: 'unsupported_media_type' | 'invalid_content_type';
}

/**
 * The problem codes for a body that cannot be read. They have the statuses 400 and 415, or 422 if the endpoint has
 * `hasClosedStatuses`.
 */
export const bodyRefusalsOf = ({ hasClosedStatuses }: Pick<EndpointDefinition, 'hasClosedStatuses'>): BodyRefusals =>
  hasClosedStatuses === true
    ? { notJson: 'invalid_json', otherType: 'invalid_content_type' }
    : { notJson: 'malformed_json', otherType: 'unsupported_media_type' };

const idempotencyCodes = ['idempotency_key_invalid', 'idempotency_key_reused'] as const;

type ValueOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;
export type ParamsOf<E extends EndpointDefinition> = E['params'] extends object
  ? { readonly [Name in keyof E['params']]: string }
  : Record<never, string>;
export type QueryOf<E extends EndpointDefinition> = ValueOf<E['query']>;
export type BodyOf<E extends EndpointDefinition> = ValueOf<E['body']>;
export type ResponseOf<E extends EndpointDefinition> = ValueOf<E['response']['schema']>;
