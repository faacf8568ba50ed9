import type { z } from 'zod';
import type { Permission } from './permissions';
import type { ProblemCode, ProblemCodeOf } from './problems';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type ServiceName = 'keys' | 'hosting' | 'compute' | 'agency' | 'databases';

/**
 * A record that belongs to the caller: the form of its id, and the 404 that answers every other value, whether it is
 * malformed, belongs to somebody else, or is gone.
 */
export interface OwnedParameter {
  schema: z.ZodType<string>;
  notFound: ProblemCodeOf<404>;
  /**
   * Staff use it to name a record of any organisation, and the service cannot know whether the record exists. Only a
   * malformed value is not found. When left out: false.
   */
  isAnybodys?: true;
}

/**
 * A parameter for something inside a record of the caller that another system knows, such as a provider's snapshot. The
 * record's own 404 comes first, and a value that names nothing is 422. The handler gets a malformed value as ''. It
 * must not ask any other system about that value.
 */
export interface NamedParameter {
  schema: z.ZodType<string>;
  notNamed: ProblemCodeOf<422>;
}

export type PathParameter = OwnedParameter | NamedParameter;

export interface EndpointDefinition {
  /** operationId in OpenAPI. */
  id: string;
  service: ServiceName;
  method: Method;
  /** The path, with `{name}` for each path parameter. */
  path: string;
  summary: string;
  /**
   * Help for deciding on the call, beyond the summary: what it overwrites, what continues meanwhile, whether it can be
   * undone. In whole sentences.
   */
  about?: string;
  /** Permissions that the caller needs, all of them. With `[]`, any key may call. */
  permissions: readonly Permission[];
  params?: Record<string, PathParameter>;
  query?: z.ZodObject;
  /** When left out, the endpoint takes no body and ignores one. */
  body?: z.ZodObject;
  /**
   * A body that the endpoint accepts, on any installation. The documentation shows it, and the conformance suite sends
   * it with ids of its own instead of these.
   */
  example?: Readonly<Record<string, unknown>>;
  /**
   * The answer in the demo of `npm start`, and the reason, for an operation that needs a state which nothing there has.
   * When left out, the operation succeeds.
   */
  inDemo?: { problem: ProblemCode; because: string };
  /**
   * `schema` is that of the body, or of each event's data in a stream. `eventLines` are the lines before the data of an
   * event in the documentation's example.
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
   * The specification lists every status of this endpoint, without 400 and 415. So a body that is not JSON is 422. When
   * left out: 400 and 415.
   */
  hasClosedStatuses?: true;
  /** The quota that a call counts against. The specification exempts 5, 9 and 10. */
  quota: 'read' | 'write' | 'mint' | 'exempt';
  /** Whether an Idempotency-Key is accepted. Only POSTs accept one. */
  idempotency: 'accepted' | 'ignored';
  /** `ignored` where the closed set of statuses has no 422 with which an undeclared parameter could be refused. */
  undeclaredQuery: 'refused' | 'ignored';
  tags: readonly string[];
}

/** Fills in what follows from the method, and keeps the literal types of a definition. */
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

/** Whether the answer has an ETag: every JSON that can be read, and the answer of a PATCH. */
export const hasEntityTag = ({ method, response }: EndpointDefinition): boolean =>
  (method === 'GET' || method === 'PATCH') && response.status === 200 && response.contentType === undefined;

/** The refusals of this endpoint, besides those that any of its kind can give. */
export const ownProblemCodesOf = ({ params = {}, problems }: EndpointDefinition): ProblemCode[] => [
  ...new Set<ProblemCode>([
    ...Object.values(params).map((parameter) => ('notFound' in parameter ? parameter.notFound : parameter.notNamed)),
    ...problems,
  ]),
];

/** Every code that `endpoint` may answer: its own codes, and those that follow from what it accepts. */
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

/** How `endpoint` refuses a body that cannot be read: with 400 and 415, or with 422 where its statuses are closed. */
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
