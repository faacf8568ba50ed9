import { type EndpointDefinition, hasEntityTag } from './endpoint';
import type { JsonSchema } from './json-schema';

const header = (description: string, schema: JsonSchema = { type: 'string' }): JsonSchema => ({ description, schema });

export const headerComponents = {
  XRequestId: header("The caller's own when it matches the pattern, else ours; it stands in every log line", {
    type: 'string',
    pattern: '^[A-Za-z0-9_-]{8,64}$',
  }),
  XDrydockMode: header('On the answers to a sandbox key', { type: 'string', const: 'sandbox' }),
  Traceparent: header('W3C trace context of the server span, while tracing is on'),
  RateLimitPolicy: header('The quota, as draft-ietf-httpapi-ratelimit-headers writes it: "read";q=600;w=60'),
  RateLimit: header(
    'What is left of it and for how long: "read";r=599;t=60. An answer that counts against no quota tells what ' +
      'is left of the writes, or an untouched window of a caller whom nobody knows',
  ),
  RetryAfter: header('Seconds', { type: 'integer', minimum: 1 }),
  WwwAuthenticate: header('Bearer', { type: 'string', const: 'Bearer' }),
  ETag: header('Names the answer by its content. Send it as If-None-Match to read again, or as If-Match to change', {
    type: 'string',
    pattern: '^"[A-Za-z0-9_-]{27}"$',
  }),
  Location: header('Where what was made, or the workflow that makes it, is'),
  XWorkflowId: header('The workflow that does what was accepted; Location is its path', {
    type: 'string',
    format: 'uuid',
  }),
  IdempotentReplayed: header('true on an answer that was stored for the Idempotency-Key', {
    type: 'string',
    const: 'true',
  }),
} as const;

const refer = (name: keyof typeof headerComponents): JsonSchema => ({ $ref: `#/components/headers/${name}` });

/** The headers of an answer that did not come from an endpoint. */
export const transportHeaders: JsonSchema = { 'X-Request-Id': refer('XRequestId') };

/** The headers of an endpoint's answer with `status`. */
export function answerHeaders(endpoint: EndpointDefinition, status: number): JsonSchema {
  return {
    'X-Request-Id': refer('XRequestId'),
    traceparent: refer('Traceparent'),
    ...(status === 401
      ? { 'WWW-Authenticate': refer('WwwAuthenticate') }
      : { 'X-Drydock-Mode': refer('XDrydockMode') }),
    'RateLimit-Policy': refer('RateLimitPolicy'),
    RateLimit: refer('RateLimit'),
    ...((status === 200 || status === 304) && hasEntityTag(endpoint) ? { ETag: refer('ETag') } : {}),
    ...(status === 201 || status === 202 ? { Location: refer('Location') } : {}),
    ...(status === 202 ? { 'X-Workflow-Id': refer('XWorkflowId') } : {}),
    ...(status === 202 || status === 409 || status === 429 || status === 503
      ? { 'Retry-After': refer('RetryAfter') }
      : {}),
    ...(status < 300 && endpoint.idempotency === 'accepted'
      ? { 'Idempotent-Replayed': refer('IdempotentReplayed') }
      : {}),
  };
}

export const idempotencyKeyParameter: JsonSchema = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes the request safe to repeat: the same key and body get the first answer again, for 24 hours',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
};

export const ifMatchParameter: JsonSchema = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The ETag of what you read: the change is made only while it is still that, else 412 `precondition_failed`. ' +
    'Left out, it is changed whatever it is by now',
  schema: { type: 'string', maxLength: 1_000 },
};

export const ifNoneMatchParameter: JsonSchema = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The ETag of an answer that you have: 304 without a body while it would be the same',
  schema: { type: 'string', maxLength: 1_000 },
};

export const lastEventIdParameter: JsonSchema = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'Where an event stream goes on',
  schema: { type: 'string' },
};
