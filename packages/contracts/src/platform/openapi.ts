import { z } from 'zod';
import { answerExample } from './answer-example';
import { type EndpointDefinition, hasEntityTag, ownProblemCodesOf, problemCodesOf } from './endpoint';
import { type JsonSchema, nameSchema, type SchemaComponents, schemaOf } from './json-schema';
import { problem } from './problem';
import { type ProblemCode, problemSchema, problems } from './problems';

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> } & JsonSchema;
  readonly [member: string]: unknown;
}

const introduction = `Send your key as \`Authorization: Bearer dd_…\`. \
Every error is a problem (RFC 9457) with a stable \`code\` and a sentence that says what to do.

A path that does not exist is answered 404 \`route_not_found\`, a method that it does not take 405 \
\`method_not_allowed\`. HEAD is answered as GET without its body, and OPTIONS with the methods in \`Allow\`; \
OPTIONS needs no key. Browsers may call from any origin with a key in \`Authorization\` (CORS, without credentials). \
A request may have 100 headers and 16 KiB of them.
A header that is not documented is ignored.

Every answer to GET has a strong \`ETag\` of its content. With it as \`If-None-Match\` the same answer \
comes as 304 without a body, which counts as a read like any other. With it as \
\`If-Match\` a PATCH changes only what is still as you read it: else 412 \`precondition_failed\`, and nothing \
was changed. Nothing needs an \`If-Match\`, so that 428 is never answered.`;

/**
 * Codes for a request that is answered before its endpoint is known, because it is malformed as HTTP, does not arrive
 * in time, or has too many headers.
 */
const transportCodes = ['malformed_request', 'request_timeout', 'headers_too_large'] as const;

/** The tags in the order of the document. The document cannot be built with a tag that is missing here. */
const tagDescriptions: Readonly<Record<string, string>> = {
  'API keys': 'Keys are minted once, listed as metadata, rotated and revoked.',
  Organisations: 'Organisations form a tree; a right that is taken away is gone in the whole subtree.',
  'Audit log': 'What was accepted, and by which key.',
  Webhooks: 'Events that are sent to a URL, signed, at least once and in order for each resource.',
  Events: 'What happened, to be followed without asking for each thing.',
  Sites: 'Sites, their domains, and how many of them an organisation may have.',
  Backups: 'Backups of a site, and the restore that overwrites the site with one.',
  'Vendor snapshots': "Timelines that a site's hosting platform keeps by itself.",
  'Offsite copies': "Copies of a site in the customer's own storage.",
  'Deleted sites': 'Sites that were deleted and can come back.',
  Applications: 'The application of a site.',
  Servers: 'Servers at a provider.',
  'Server snapshots': "The provider's snapshots of a server, and the rollback that overwrites its disk with one.",
  'Agency boards': 'Boards with columns, labels and cards, and the archive of cards.',
  Databases: 'Managed databases, their backups, restores and upgrades.',
  Workflows: 'Long work: its steps, its progress as an event stream, and how it ended.',
};

/**
 * The OpenAPI 3.1 document of `endpoints`, made from the same definitions that the gateway, the services and the tests
 * use.
 */
export function buildOpenApi(endpoints: readonly EndpointDefinition[]): OpenApiDocument {
  const components: SchemaComponents = new Map();
  schemaOf(problemSchema, 'output', components);
  const tags = [...new Set(endpoints.flatMap(({ tags: own }) => own))];
  const unknown = tags.filter((name) => tagDescriptions[name] === undefined);
  if (unknown.length > 0) throw new Error(`no description of the tags ${unknown.join(', ')}`);
  const answered = [...new Set([...transportCodes, ...endpoints.flatMap(problemCodesOf)])].sort();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] = {
      ...paths[endpoint.path],
      [endpoint.method.toLowerCase()]: operationOf(endpoint, components),
    };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Drydock',
      version: '1',
      summary: 'The control plane of a hosting company',
      description: introduction,
      contact: { name: 'Support of this installation' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: Object.entries(tagDescriptions).flatMap(([name, description]) =>
      tags.includes(name) ? [{ name, description }] : [],
    ),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(transportCodes.map((code) => [code, problemAnswer([code], transportHeaders)])),
      examples: Object.fromEntries(
        answered.map((code) => [code, { summary: problems[code].title, value: exampleOf(code) }]),
      ),
      headers: headerComponents,
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: '`dd_<live|test>_<prefix>_<secret>`' },
      },
    },
  };
}

function operationOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema {
  const { id, summary, tags, body, example, permissions } = endpoint;
  return {
    operationId: id,
    summary,
    tags: [...tags],
    description: descriptionOf(endpoint),
    'x-permissions': [...permissions],
    'x-quota': endpoint.quota,
    parameters: parametersOf(endpoint, components),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: {
              'application/json': {
                schema: nameSchema(`${nameOf(id)}Request`, schemaOf(body, 'input', components), components),
                example,
              },
            },
          },
        }),
    responses: responsesOf(endpoint, components),
  };
}

const longWork = 'The answer comes once the work is accepted; the workflow at `Location` tells each step and the end.';

/**
 * The description of an operation, with a paragraph each for what it does, what it needs, what it refuses, and how the
 * demo answers it if it cannot succeed there.
 */
function descriptionOf(endpoint: EndpointDefinition): string {
  const { about, permissions, inDemo, response } = endpoint;
  const needed = permissions.map((name) => `\`${name}\``).join(' and ');
  const refusals = ownProblemCodesOf(endpoint).map((code) => `\`${code}\` (${problems[code].title})`);
  return [
    [about, response.status === 202 && longWork].filter(Boolean).join(' '),
    needed === '' ? 'Any key may call it.' : `Needs ${needed}.`,
    refusals.length > 0 && `Refused as ${refusals.join(', ')}.`,
    inDemo !== undefined &&
      `In the demo of \`npm start\` it is answered ${problems[inDemo.problem].status} \`${inDemo.problem}\`: ` +
        `${inDemo.because}.`,
  ]
    .filter(Boolean)
    .join('\n\n');
}

function parametersOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema[] {
  const path = Object.entries(endpoint.params ?? {}).map(([name, { schema }]) => ({
    ...described(name, schemaOf(schema, 'input', components)),
    in: 'path',
    required: true,
  }));
  const query = Object.entries(endpoint.query?.shape ?? {}).map(([name, schema]) => ({
    ...described(name, schemaOf(schema, 'input', components)),
    in: 'query',
    required: !schema.safeParse(undefined).success,
  }));
  const headers = [
    ...(endpoint.idempotency === 'accepted' ? [idempotencyKeyParameter] : []),
    ...(endpoint.response.contentType === 'text/event-stream' ? [lastEventIdParameter] : []),
    ...(endpoint.method === 'PATCH' ? [ifMatchParameter] : []),
    ...(endpoint.method === 'GET' && hasEntityTag(endpoint) ? [ifNoneMatchParameter] : []),
  ];
  return [...path, ...query, ...headers];
}

/** A parameter with its description. OpenAPI has the text at the parameter, not at the schema. */
const described = (name: string, { description, ...schema }: JsonSchema): JsonSchema => ({ name, description, schema });

/** The operation's name with a capital, as the name of a type. */
const nameOf = (operationId: string): string => operationId.charAt(0).toUpperCase() + operationId.slice(1);

/**
 * Every status of an endpoint, with the codes that go with it. 503 is written as `default`, because every call can be
 * answered with 503.
 */
function responsesOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema {
  const { status, schema: answer, contentType = 'application/json' } = endpoint.response;
  const codesOf = new Map<number, ProblemCode[]>();
  for (const code of problemCodesOf(endpoint))
    codesOf.set(problems[code].status, [...(codesOf.get(problems[code].status) ?? []), code]);
  const success = {
    description: status === 204 ? 'Done; there is no body' : endpoint.summary,
    headers: answerHeaders(endpoint, status),
    ...(answer === undefined
      ? {}
      : { content: { [contentType]: contentOf(schemaOf(answer, 'output', components), endpoint, components) } }),
  };
  // Each status has one answer, which lists the codes of the transport and of the endpoint.
  for (const code of transportCodes) {
    const own = codesOf.get(problems[code].status);
    if (own !== undefined) own.unshift(code);
  }
  const schema = ownProblem(endpoint, [...codesOf.values()].flat(), components);
  const refusals = [...codesOf]
    .sort(([a], [b]) => a - b)
    .map(([code, codes]) => [
      code === 503 ? 'default' : String(code),
      problemAnswer(codes, answerHeaders(endpoint, code), schema),
    ]);
  const over = contentType === 'text/event-stream' ? { '204': nothingMore(endpoint) } : {};
  const same = endpoint.method === 'GET' && hasEntityTag(endpoint) ? { '304': notModified(endpoint) } : {};
  const transport = transportCodes.map((code) => [problems[code].status, { $ref: `#/components/responses/${code}` }]);
  return {
    [String(status)]: success,
    ...over,
    ...same,
    ...Object.fromEntries(transport),
    ...Object.fromEntries(refusals),
  };
}

/**
 * The content of an answer. An event stream is text. Its schema is named after the schema of its events, and its
 * example is a single event.
 */
function contentOf(
  schema: JsonSchema,
  { id, response: { eventLines } }: EndpointDefinition,
  components: SchemaComponents,
): JsonSchema {
  const example = answerExample(schema, components);
  if (eventLines === undefined) return { schema, example };
  const { $ref } = schema;
  if (typeof $ref !== 'string') throw new Error(`the events of ${id} have no name`);
  const name = $ref.slice($ref.lastIndexOf('/') + 1);
  const description =
    `Server-sent events, of which each has a ${name} as JSON in \`data\`. ` +
    'A line that is only `:` keeps the connection open.';
  return {
    schema: nameSchema(`${name}Stream`, { type: 'string', description }, components),
    example: `${eventLines}\ndata: ${JSON.stringify(example)}\n\n`,
  };
}

const nothingMore = (endpoint: EndpointDefinition): JsonSchema => ({
  description: 'The stream is over and Last-Event-ID was its last event: an EventSource does not come back',
  headers: answerHeaders(endpoint, 204),
});

const notModified = (endpoint: EndpointDefinition): JsonSchema => ({
  description: 'It is what If-None-Match names; there is no body',
  headers: answerHeaders(endpoint, 304),
});

/**
 * The problem schema of an endpoint, with only the codes that it answers. So a compiler can check that a client handles
 * all of them.
 */
function ownProblem(
  { id }: EndpointDefinition,
  codes: readonly ProblemCode[],
  components: SchemaComponents,
): JsonSchema {
  const code = z.enum(codes).describe(problemSchema.shape.code.description ?? '');
  return schemaOf(problemSchema.extend({ code }).meta({ id: `${nameOf(id)}Problem` }), 'output', components);
}

const anyProblem = { $ref: '#/components/schemas/Problem' };

const problemAnswer = (
  codes: readonly ProblemCode[],
  headers: JsonSchema,
  schema: JsonSchema = anyProblem,
): JsonSchema => ({
  description: codes.map((code) => `\`${code}\`: ${problems[code].title}`).join('. '),
  headers,
  content: {
    'application/problem+json': {
      schema,
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  },
  'x-problem-codes': [...codes],
});

const exampleOf = (code: ProblemCode): JsonSchema => ({ ...problem(code).body('req_5f0c1e8a44b1') });

const header = (description: string, schema: JsonSchema = { type: 'string' }): JsonSchema => ({ description, schema });

const headerComponents = {
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

/** The headers of an answer to a request whose endpoint is not known. */
const transportHeaders: JsonSchema = { 'X-Request-Id': refer('XRequestId') };

function answerHeaders(endpoint: EndpointDefinition, status: number): JsonSchema {
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

const idempotencyKeyParameter: JsonSchema = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes the request safe to repeat: the same key and body get the first answer again, for 24 hours',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
};

const ifMatchParameter: JsonSchema = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description:
    'The ETag of what you read: the change is made only while it is still that, else 412 `precondition_failed`. ' +
    'Left out, it is changed whatever it is by now',
  schema: { type: 'string', maxLength: 1_000 },
};

const ifNoneMatchParameter: JsonSchema = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The ETag of an answer that you have: 304 without a body while it would be the same',
  schema: { type: 'string', maxLength: 1_000 },
};

const lastEventIdParameter: JsonSchema = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'Where an event stream goes on',
  schema: { type: 'string' },
};
