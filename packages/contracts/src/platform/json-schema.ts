import { z } from 'zod';

export type JsonSchema = { readonly [member: string]: unknown };

/** Schemas with a `meta({ id })`, keyed by the id. */
export type SchemaComponents = Map<string, JsonSchema>;

const componentPrefix = '#/components/schemas/';
const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The JSON Schema (2020-12) of what a client sends (`input`) or receives (`output`). Schemas with an id become
 * references, and are added to `components`. Throws when two different schemas have the same id.
 */
export function schemaOf(
  schema: z.ZodType,
  io: 'input' | 'output',
  components: SchemaComponents = new Map(),
): JsonSchema {
  const { $schema: _dialect, $defs: definitions = {}, ...own } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  for (const [id, definition] of Object.entries(definitions))
    addComponent(components, id, pointToComponents(definition));
  const { id, ...named } = own;
  return typeof id === 'string' ? nameSchema(id, pointToComponents(named), components) : pointToComponents(own);
}

/** Makes `schema` a component with the name `id`, unless it is already a reference. Returns the reference. */
export function nameSchema(id: string, schema: JsonSchema, components: SchemaComponents): JsonSchema {
  if ('$ref' in schema) return schema;
  addComponent(components, id, schema);
  return { $ref: `${componentPrefix}${id}` };
}

function addComponent(components: SchemaComponents, id: string, schema: JsonSchema): void {
  const { id: _id, ...definition } = schema;
  const known = components.get(id);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(definition))
    throw new Error(`two schemas are called ${id}`);
  components.set(id, definition);
}

/** Rewrites zod's references `#/$defs/X` into references to OpenAPI's components. */
function pointToComponents(value: unknown): JsonSchema {
  const rewritten = rewrite(value);
  if (!isObject(rewritten)) throw new TypeError('a schema is an object');
  return rewritten;
}

function rewrite(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewrite);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === '$ref' && typeof member === 'string' ? member.replace('#/$defs/', componentPrefix) : rewrite(member),
    ]),
  );
}
