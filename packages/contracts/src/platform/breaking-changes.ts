import type { JsonSchema } from './json-schema';
import type { OpenApiDocument } from './openapi';

/** The parts of each operation that callers rely on. They are few enough to be committed and read. */
export interface Surface {
  readonly [operation: string]: {
    /** Parameters and fields of the body that a call must have. */
    readonly needs: readonly string[];
    /** Everything that the operation accepts, with the type of each. */
    readonly takes: Readonly<Record<string, string>>;
    /** Everything that the operation answers on success, with the type of each. */
    readonly gives: Readonly<Record<string, string>>;
    readonly status: readonly string[];
  };
}

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectsIn = (value: unknown): JsonSchema[] => (Array.isArray(value) ? value.filter(isObject) : []);

/**
 * The surface of a document. Fields are named by their path, such as `data[].id`. A type is a JSON type, such as
 * `string | null`. An enumeration has its values instead, such as `"live" | "sandbox"`.
 */
export function surfaceOf(document: OpenApiDocument): Surface {
  const resolved = (schema: unknown): JsonSchema => {
    if (!isObject(schema)) return {};
    const { $ref: reference } = schema;
    return typeof reference === 'string'
      ? resolved(document.components.schemas[reference.split('/').at(-1) ?? ''])
      : schema;
  };
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, Surface[string]] => {
      const parameters = objectsIn(operation['parameters']);
      const body = bodyOf(operation['requestBody']);
      const [input, output] = [
        fieldsOf(body, resolved),
        Object.entries(isObject(operation['responses']) ? operation['responses'] : {}),
      ];
      const successes = output.filter(([status]) => /^2/.test(status));
      return [
        `${method.toUpperCase()} ${path}`,
        {
          needs: [
            ...parameters.filter(({ required }) => required === true).map(({ name }) => String(name)),
            ...(isObject(operation['requestBody']) && operation['requestBody']['required'] === true
              ? requiredIn(resolved(body))
              : []),
          ].sort(),
          takes: {
            ...Object.fromEntries(parameters.map(({ name, schema }) => [String(name), typeOf(resolved(schema))])),
            ...input,
          },
          gives: Object.assign({}, ...successes.map(([, answer]) => fieldsOf(bodyOf(answer), resolved))),
          status: successes.map(([status]) => status),
        },
      ];
    }),
  );
  return Object.fromEntries(operations);
}

const bodyOf = (holder: unknown): unknown => {
  const content = isObject(holder) && isObject(holder['content']) ? Object.values(holder['content'])[0] : undefined;
  return isObject(content) ? content['schema'] : undefined;
};
const requiredIn = ({ required }: JsonSchema): string[] => (Array.isArray(required) ? required.map(String) : []);

function fieldsOf(
  given: unknown,
  resolved: (schema: unknown) => JsonSchema,
  at = '',
  within: readonly unknown[] = [],
): Record<string, string> {
  const schema = resolved(given);
  if (within.includes(schema)) return {};
  const below = [...within, schema];
  const members = isObject(schema['properties']) ? Object.entries(schema['properties']) : [];
  const alternatives = [...objectsIn(schema['anyOf']), ...objectsIn(schema['allOf'])];
  return Object.assign(
    {},
    ...alternatives.map((one) => fieldsOf(one, resolved, at, below)),
    schema['items'] === undefined ? {} : fieldsOf(schema['items'], resolved, `${at}[]`, below),
    ...members.map(([name, member]) => {
      const place = at === '' ? name : `${at}.${name}`;
      return { [place]: typeOf(resolved(member), resolved), ...fieldsOf(member, resolved, place, below) };
    }),
  );
}

function typeOf(
  schema: JsonSchema,
  resolved: (schema: unknown) => JsonSchema = (same) => (isObject(same) ? same : {}),
): string {
  if (schema['const'] !== undefined) return JSON.stringify(schema['const']);
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => JSON.stringify(value)).join(' | ');
  const alternatives = objectsIn(schema['anyOf']);
  if (alternatives.length > 0) return alternatives.map((one) => typeOf(resolved(one), resolved)).join(' | ');
  if (schema['type'] === 'array') return 'array';
  const { type } = schema;
  return Array.isArray(type) ? type.join(' | ') : typeof type === 'string' ? type : 'object';
}

/**
 * The changes from `released` to `current` that would break a caller, one sentence each. New operations, new optional
 * input, and new fields and new enumeration values in answers break no caller.
 */
export function breakingChanges(released: Surface, current: Surface): string[] {
  return Object.entries(released).flatMap(([operation, before]) => {
    const now = current[operation];
    if (now === undefined) return [`${operation} is gone`];
    const needed = now.needs
      .filter((name) => !before.needs.includes(name))
      .map((name) => `${operation} needs ${name} now`);
    const status = before.status
      .filter((one) => !now.status.includes(one))
      .map((one) => `${operation} answers ${one} no more`);
    const taken = Object.entries(before.takes).flatMap(([name, type]) => {
      const takes = now.takes[name];
      if (takes === undefined) return [`${operation} takes ${name} no more`];
      const lost = valuesOf(type).filter((value) => !valuesOf(takes).includes(value));
      return lost.length === 0 ? [] : [`${operation} takes ${name} as ${takes}, and no more as ${lost.join(' | ')}`];
    });
    const given = Object.entries(before.gives).flatMap(([name, type]) => {
      const gives = now.gives[name];
      if (gives === undefined) return [`${operation} answers ${name} no more`];
      const added = valuesOf(gives).filter((value) => !valuesOf(type).includes(value) && !isNewValue(value, type));
      return added.length === 0 ? [] : [`${operation} answers ${name} as ${gives}, and was ${type}`];
    });
    return [...needed, ...status, ...taken, ...given];
  });
}

const valuesOf = (type: string): string[] => type.split(' | ');
const isNewValue = (value: string, type: string): boolean => value.startsWith('"') && type.startsWith('"');
