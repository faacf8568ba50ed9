import { readFileSync } from 'node:fs';
import path from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import { endpoints } from '../endpoints';
import { ownProblemCodesOf, problemCodesOf } from './endpoint';
import { schemaOf } from './json-schema';
import { buildOpenApi } from './openapi';
import { problems } from './problems';

const document = buildOpenApi(endpoints);
const committed = readFileSync(path.join(__dirname, '../../../../docs/openapi.json'), 'utf8');

/** Every `$ref` below `value`. */
function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === '$ref' && typeof member === 'string' ? [member] : referencesIn(member),
  );
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Calls `look` for every object in `value`, with the path of the object as `at`. */
function visit(value: unknown, look: (node: Record<string, unknown>, at: string) => void, at = '#'): void {
  if (isRecord(value)) look(value, at);
  if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) visit(member, look, `${at}/${name}`);
}

const resolve = (reference: string): unknown =>
  reference
    .replace(/^#\//, '')
    .split('/')
    .map((name) => name.replaceAll('~1', '/'))
    .reduce<unknown>(
      (node, name) => (typeof node === 'object' && node !== null ? Reflect.get(node, name) : undefined),
      document,
    );

describe('docs/openapi.json', () => {
  it('is current: run `npm run openapi` after a change of the contracts', () => {
    expect(JSON.parse(committed)).toEqual(JSON.parse(JSON.stringify(document)));
  });

  it('shows a valid example of every body', () => {
    const refused = endpoints.filter(
      ({ body, example }) => body !== undefined && !body.strict().safeParse(example).success,
    );
    expect(refused.map(({ id }) => id)).toEqual([]);
    expect(endpoints.filter(({ body, example }) => body === undefined && example !== undefined)).toEqual([]);
  });

  it('shows a valid example of every answer', () => {
    const shown = endpoints.flatMap(
      ({ id, method, path: at, response: { status, schema, contentType = 'application/json' } }) => {
        if (schema === undefined) return [];
        const type = contentType.replace('/', '~1');
        const answer = resolve(
          `#/paths/${at.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}/content/${type}`,
        );
        const example = isRecord(answer) ? answer['example'] : undefined;
        // An event of a stream consists of its id, its name and its data.
        const data =
          typeof example === 'string' ? /^id: \S+\nevent: \S+\ndata: (.+)\n\n$/.exec(example)?.[1] : undefined;
        return [{ id, schema, body: data === undefined ? example : JSON.parse(data) }];
      },
    );
    const wrong = shown.filter(({ schema, body }) => !schema.safeParse(body).success);
    expect([shown.length > 80, wrong.map(({ id }) => id)]).toEqual([true, []]);
  });

  it('describes every field and every parameter', () => {
    const silent: string[] = [];
    visit(document, (node, at) => {
      for (const [name, field] of Object.entries(isRecord(node['properties']) ? node['properties'] : {}))
        if (!isRecord(field) || typeof field['description'] !== 'string') silent.push(`${at}.${name}`);
      const parameters = Array.isArray(node['parameters']) ? node['parameters'] : [];
      for (const { name, description } of parameters) if (typeof description !== 'string') silent.push(`${at} ${name}`);
    });
    expect(silent).toEqual([]);
  });

  it('names every object, so that a generated client has a type for it', () => {
    const unnamed: string[] = [];
    visit(document, (node, at) => {
      if (isRecord(node['properties']) && !/^#\/components\/schemas\/\w+$/.test(at)) unnamed.push(at);
    });
    expect(unnamed).toEqual([]);
  });

  it('names the text of each event stream', () => {
    const streams = endpoints.filter(({ response }) => response.contentType === 'text/event-stream');
    const names = streams.map(({ path: at }) =>
      resolve(`#/paths/${at.replaceAll('/', '~1')}/get/responses/200/content/text~1event-stream/schema`),
    );
    expect([...new Set(names.map((schema) => JSON.stringify(schema)))]).toHaveLength(2);
    for (const schema of names) expect(schema).toEqual({ $ref: expect.stringMatching(/\/(?:Event|Workflow)Stream$/) });
  });

  it('says that limit is an integer, wherever there is one', () => {
    const parameters = Object.values(document.paths).flatMap((operations) =>
      Object.values(operations).flatMap(({ parameters: given }) => JSON.parse(JSON.stringify(given))),
    );
    const limits = parameters.filter(({ name }: { name: string }) => name === 'limit');
    expect(limits.length).toBeGreaterThan(10);
    for (const { schema } of limits) expect(schema).toMatchObject({ type: 'integer', minimum: 1, default: 50 });
  });

  it('gives every list a cursor and a limit', () => {
    const lists = endpoints.filter(
      ({ response: { schema } }) =>
        schema !== undefined && /"data":\{"type":"array"/.test(JSON.stringify(schemaOf(schema, 'output'))),
    );
    for (const { id, query } of lists)
      expect([id, Object.keys(query?.shape ?? {})]).toEqual([id, expect.arrayContaining(['cursor', 'limit'])]);
  });

  it('has each endpoint once, with every status and code that it can answer', () => {
    for (const endpoint of endpoints) {
      const operation = JSON.parse(JSON.stringify(document.paths[endpoint.path]?.[endpoint.method.toLowerCase()]));
      expect(operation.operationId).toBe(endpoint.id);
      expect(Object.keys(operation.responses)).toContain(String(endpoint.response.status));
      for (const code of problemCodesOf(endpoint)) {
        const { status } = problems[code];
        expect(operation.responses[status === 503 ? 'default' : status]['x-problem-codes']).toContain(code);
      }
      const inPath = [...endpoint.path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
      expect(
        operation.parameters
          .filter((parameter: { in: string }) => parameter.in === 'path')
          .map(({ name }: { name: string }) => name),
      ).toEqual(inPath);
    }
    expect(Object.values(document.paths).flatMap((operations) => Object.keys(operations))).toHaveLength(
      endpoints.length,
    );
  });

  it('gives each operation a problem schema with exactly its codes, and describes its permissions and refusals', () => {
    for (const endpoint of endpoints) {
      const operation = JSON.parse(JSON.stringify(document.paths[endpoint.path]?.[endpoint.method.toLowerCase()]));
      const schemas = Object.values(
        operation.responses as Record<string, { content?: Record<string, { schema?: object }> }>,
      ).flatMap(({ content }) => content?.['application/problem+json']?.schema ?? []);
      const name = `${endpoint.id.charAt(0).toUpperCase()}${endpoint.id.slice(1)}Problem`;
      for (const schema of schemas) expect(schema).toEqual({ $ref: `#/components/schemas/${name}` });
      const { enum: codes } = JSON.parse(JSON.stringify(document.components.schemas[name]?.['properties'])).code;
      const transport: string[] = ['malformed_request', 'request_timeout', 'headers_too_large'];
      expect(codes.filter((code: string) => !transport.includes(code)).sort()).toEqual(
        [...problemCodesOf(endpoint)].sort(),
      );
      for (const told of [...endpoint.permissions, ...ownProblemCodesOf(endpoint)])
        expect(operation.description).toContain(`\`${told}\``);
    }
  });

  it('has no reference without a target', () => {
    const references = referencesIn(document);
    expect(references.length).toBeGreaterThan(100);
    expect(references.filter((reference) => resolve(reference) === undefined)).toEqual([]);
  });

  it('holds valid JSON Schemas that accept what our own schemas accept', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'https://drydock.test/openapi', components: document.components }, 'openapi');
    for (const name of Object.keys(document.components.schemas)) {
      expect(ajv.validateSchema(document.components.schemas[name] ?? {})).toBe(true);
      ajv.compile({ $ref: `https://drydock.test/openapi#/components/schemas/${name}` });
    }
    const key = ajv.compile({ $ref: 'https://drydock.test/openapi#/components/schemas/PageMeta' });
    expect([key({ next_cursor: null, has_more: false, limit: 50 }), key({ next_cursor: null })]).toEqual([true, false]);
  });

  it('gives each endpoint a path and an operation id of its own', () => {
    const keys = endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(endpoints.map((endpoint) => endpoint.id)).size).toBe(endpoints.length);
  });
});
