// Writes src/generated/contract.ts: the facts about each operation of docs/openapi.json that its command needs.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
// @boundaries-ignore This script runs before anything is built.
import { expectNoArguments } from '../../infra/dev/no-arguments.mjs';

expectNoArguments('usage: node packages/cli/generate.mjs\n  Writes src/generated/contract.ts from docs/openapi.json.');

const here = path.dirname(fileURLToPath(import.meta.url));
const document = JSON.parse(fs.readFileSync(path.join(here, '../../docs/openapi.json'), 'utf8'));

/**
 * Replaces the references of a schema by their targets. Members beside a reference, such as a description, take
 * precedence over those of the target.
 */
function resolve({ $ref, ...rest }) {
  if ($ref === undefined) return rest;
  const target = $ref
    .split('/')
    .slice(1)
    .reduce((node, key) => node[key], document);
  return { ...resolve(target), ...rest };
}

/** Describes a value of a call. `place` is path, query or body. `steps` are the names that lead to the value there. */
function fieldOf(place, steps, required, given) {
  const { description, default: standard, ...schema } = resolve(given);
  const choices = (schema.anyOf ?? [schema]).map(resolve);
  const isNullable = choices.some(({ type }) => type === 'null') || [schema.type].flat().includes('null');
  const [shape = {}] = choices.filter(({ type }) => type !== 'null');
  const isArray = shape.type === 'array';
  const { type = 'string', enum: ownValues } = isArray ? resolve(shape.items) : shape;
  // The contract may allow fixed values and any other string. The command then accepts every string.
  const values = choices.filter((choice) => choice.type === 'string').length > 1 ? undefined : ownValues;
  return { place, steps, type: [type].flat()[0], required, isArray, isNullable, values, standard, description };
}

/** Lists the fields of a body. An object within the body is replaced by its own fields. */
const fieldsOf = (schema, steps = []) =>
  Object.entries(schema.properties ?? {}).flatMap(([name, given]) => {
    const own = resolve(given);
    const at = [...steps, name];
    const required = (schema.required ?? []).includes(name);
    if (own.type === 'object')
      return fieldsOf(own, at).map((field) => ({ ...field, required: required && field.required }));
    return [fieldOf('body', at, required, given)];
  });

/** Returns the name of the field with the items, if the answer is a page of a list. */
function itemsOf(schema) {
  const { properties = {} } = schema;
  if (properties.page === undefined) return undefined;
  return Object.keys(properties).find((name) => resolve(properties[name]).type === 'array');
}

const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
  Object.entries(methods).map(([method, { operationId, summary, description, parameters, requestBody, responses }]) => {
    const body = requestBody === undefined ? undefined : resolve(requestBody.content['application/json'].schema);
    const status = ['200', '201', '202', '204'].find((code) => code in responses);
    const answer = responses[status].content ?? {};
    const asked = parameters.filter((parameter) => parameter.in !== 'header');
    const own = {
      method: method.toUpperCase(),
      path: route,
      summary,
      description,
      fields: [
        ...asked.map(({ name, in: place, required, schema, ...rest }) =>
          fieldOf(place, [name], required, {
            ...resolve(schema),
            ...(rest.description === undefined ? {} : { description: rest.description }),
          }),
        ),
        ...(body === undefined ? [] : fieldsOf(body)),
      ],
      hasBody: body !== undefined,
      takesKey: parameters.some(({ name }) => name === 'Idempotency-Key'),
      isLong: status === '202',
      isStream: 'text/event-stream' in answer,
      items:
        method === 'get' && 'application/json' in answer
          ? itemsOf(resolve(answer['application/json'].schema))
          : undefined,
    };
    return [operationId, own];
  }),
);

const target = path.join(here, 'src/generated');
fs.mkdirSync(target, { recursive: true });
const ids = operations.map(([id]) => `  | '${id}'`).join('\n');
const table = JSON.stringify(Object.fromEntries(operations));
fs.writeFileSync(
  path.join(target, 'contract.ts'),
  `import type { Operation } from '../operation';

export type OperationId =
${ids};

export const version = ${JSON.stringify(document.info.version)};
export const operations: Readonly<Record<OperationId, Operation>> = ${table};
`,
);
