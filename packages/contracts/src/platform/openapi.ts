import { type EndpointDefinition, problemCodesOf } from './endpoint';
import { type JsonSchema, type SchemaComponents, schemaOf } from './json-schema';
import { answerHeaders, headerComponents, idempotencyKeyParameter, lastEventIdParameter } from './openapi-headers';
import { type ProblemCode, problemSchema, problems } from './problems';

export interface OpenApiDocument {
  readonly openapi: '3.1.1';
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> } & JsonSchema;
  readonly [member: string]: unknown;
}

const transportAnswers = `Before everything else, and documented here once: what is malformed as HTTP is answered 400 \`malformed_request\`, a request that does not
arrive in time 408 \`request_timeout\`, and more than 100 headers or 16 KiB of them 431 \`headers_too_large\`. Each is a problem with an \`X-Request-Id\`. A path that
does not exist is 404 \`route_not_found\`, a method that it does not take 405 \`method_not_allowed\`. A header that is not documented is ignored.`;

/** The OpenAPI 3.1 document of `endpoints`: whatever the gateway, the services and the tests know of them, and nothing else. */
export function buildOpenApi(endpoints: readonly EndpointDefinition[]): OpenApiDocument {
  const components: SchemaComponents = new Map();
  schemaOf(problemSchema, 'output', components);
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const endpoint of endpoints) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operationOf(endpoint, components) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Drydock',
      version: '1',
      summary: 'The control plane of a hosting company',
      description: transportAnswers,
      license: { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' },
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: [...new Set(endpoints.flatMap(({ tags }) => tags))].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: headerComponents,
      securitySchemes: { apiKey: { type: 'http', scheme: 'bearer', description: 'dd_<live|test>_<prefix>_<secret>' } },
    },
  };
}

function operationOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema {
  const { id, summary, tags, body, example, permissions } = endpoint;
  return {
    operationId: id,
    summary,
    tags: [...tags],
    description: permissions.length === 0 ? 'Any key may call it.' : `Needs ${permissions.map((name) => `\`${name}\``).join(' and ')}.`,
    'x-permissions': [...permissions],
    'x-quota': endpoint.quota,
    parameters: parametersOf(endpoint, components),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { 'application/json': { schema: schemaOf(body, 'input', components), example } },
          },
        }),
    responses: responsesOf(endpoint, components),
  };
}

function parametersOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema[] {
  const path = Object.entries(endpoint.params ?? {}).map(([name, { schema }]) => ({
    name,
    in: 'path',
    required: true,
    schema: schemaOf(schema, 'input', components),
  }));
  const query = Object.entries(endpoint.query?.shape ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: !schema.safeParse(undefined).success,
    schema: schemaOf(schema, 'input', components),
  }));
  const headers = [
    ...(endpoint.idempotency === 'accepted' ? [idempotencyKeyParameter] : []),
    ...(endpoint.response.contentType === 'text/event-stream' ? [lastEventIdParameter] : []),
  ];
  return [...path, ...query, ...headers];
}

/** Every status with the codes that it can mean; 503 is `default`, since it can happen to every call. */
function responsesOf(endpoint: EndpointDefinition, components: SchemaComponents): JsonSchema {
  const { status, schema, contentType = 'application/json' } = endpoint.response;
  const codesOf = new Map<number, ProblemCode[]>();
  for (const code of problemCodesOf(endpoint)) codesOf.set(problems[code].status, [...(codesOf.get(problems[code].status) ?? []), code]);
  const success = {
    description: status === 204 ? 'Done; there is no body' : endpoint.summary,
    headers: answerHeaders(endpoint, status),
    ...(schema === undefined ? {} : { content: { [contentType]: { schema: schemaOf(schema, 'output', components) } } }),
  };
  const refusals = [...codesOf]
    .sort(([a], [b]) => a - b)
    .map(([code, codes]) => [code === 503 ? 'default' : String(code), refusal(endpoint, code, codes)]);
  const over = contentType === 'text/event-stream' ? { '204': nothingMore(endpoint) } : {};
  return { [String(status)]: success, ...over, ...Object.fromEntries(refusals) };
}

const nothingMore = (endpoint: EndpointDefinition): JsonSchema => ({
  description: 'The stream is over and Last-Event-ID was its last event: an EventSource does not come back',
  headers: answerHeaders(endpoint, 204),
});

const refusal = (endpoint: EndpointDefinition, status: number, codes: readonly ProblemCode[]): JsonSchema => ({
  description: codes.map((code) => `\`${code}\`: ${problems[code].title}`).join('. '),
  headers: answerHeaders(endpoint, status),
  content: {
    'application/problem+json': {
      schema: { allOf: [{ $ref: '#/components/schemas/Problem' }, { properties: { code: { enum: [...codes] } } }] },
    },
  },
  'x-problem-codes': [...codes],
});
