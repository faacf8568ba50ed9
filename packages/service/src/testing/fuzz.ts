import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { type JsonSchema, type SchemaComponents, schemaOf } from '@drydock/contracts/platform/json-schema';
import fc from 'fast-check';
import type { z } from 'zod';
import { malformed, parametersOf } from './ask-endpoint';
import type { Things } from './conformance-rule';

export interface Asked {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, unknown>>;
  body?: unknown;
  idempotencyKey?: string;
  lastEventId?: string;
}

/**
 * Requests that are similar to those that the operation accepts. They consist of parts of a request that succeeds,
 * values that fit its schemas, and values that nobody expects. `good` is a body that succeeds.
 */
export function requestsOf(endpoint: EndpointDefinition, things: Things, good: object = {}): fc.Arbitrary<Asked> {
  const { query, body, idempotency, response } = endpoint;
  const params = parametersOf(endpoint).map((name): [string, fc.Arbitrary<string>] => [
    name,
    fc.oneof(
      { weight: 12, arbitrary: fc.constant(things.params[name] ?? 'x') },
      {
        weight: 1,
        arbitrary: fc.oneof(
          fc.uuid({ version: 7 }),
          oddText.map((text) => encodeURIComponent(text.toWellFormed()) || 'x'),
          fc.constantFrom(...malformed),
        ),
      },
    ),
  ]);
  const asked = {
    params: fc.record(Object.fromEntries(params)),
    query: query === undefined ? fc.constant({}) : queriesOf(query),
    ...(body === undefined ? {} : { body: bodiesOf(body, good, things) }),
    ...(idempotency === 'ignored'
      ? {}
      : { idempotencyKey: fc.oneof(fc.uuid(), fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 300 })) }),
    ...(response.contentType === 'text/event-stream' ? { lastEventId: placesInStream } : {}),
  };
  return fc.record(asked, { requiredKeys: ['params', 'query'] }) as fc.Arbitrary<Asked>;
}

/** Places in a stream: versions of a workflow, ids of events, and texts that are neither. */
const placesInStream = fc.oneof(
  fc.nat({ max: 3 }).map(String),
  fc.uuid({ version: 7 }),
  fc.constantFrom('00000000-0000-0000-0000-000000000000', '', '-1', '1e9', '9'.repeat(100)),
  fc.string({ unit: 'grapheme-ascii', maxLength: 300 }),
);

/**
 * A query with many parameters is nearly always refused for one of them, so half of the queries have at most two
 * parameters.
 */
function queriesOf(schema: z.ZodObject): fc.Arbitrary<object> {
  const whole = valuesOf(schema, {}).filter(
    (value) => typeof value === 'object' && value !== null,
  ) as fc.Arbitrary<object>;
  const names = Object.keys(schema.shape);
  const few = fc
    .tuple(whole, fc.subarray(names, { maxLength: Math.min(2, names.length) }))
    .map(([value, kept]) => changedIn({}, value, kept));
  return fc.oneof(whole, few);
}

function bodiesOf(schema: z.ZodObject, good: object, { fields = {} }: Things): fc.Arbitrary<unknown> {
  const generated = valuesOf(schema, fields);
  return fc.oneof(
    { weight: 4, arbitrary: generated },
    {
      weight: 4,
      arbitrary: fc
        .tuple(generated, fc.subarray(Object.keys(schema.shape)))
        .map(([value, names]) => changedIn(good, Object(value), names)),
    },
    {
      weight: 1,
      arbitrary: fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.json()).map((bytes) => Buffer.from(bytes as string)),
    },
  );
}

const changedIn = (good: object, other: object, names: readonly string[]): object => ({
  ...good,
  ...Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(other, name) ? [[name, Reflect.get(other, name)]] : [])),
  ),
});

/** The query string as it is sent. A value that is no text is written as JSON. */
export function searchOf(query: Asked['query']): string {
  const members = Object.entries(query).map(([name, value]): [string, string] => [
    name.toWellFormed(),
    (typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).toWellFormed().slice(0, 600),
  ]);
  return members.length === 0 ? '' : `?${new URLSearchParams(members).toString()}`.slice(0, 2_048);
}

type Json = fc.JsonValue;

/**
 * Values that a schema accepts, often at its limits, and sometimes values that it refuses. `known` has values that name
 * existing records, by field.
 */
function valuesOf(schema: z.ZodType, known: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  const components: SchemaComponents = new Map();
  const root = schemaOf(schema, 'input', components);
  return new Values(components, known).of(root);
}

const isSchema = (value: unknown): value is JsonSchema => typeof value === 'object' && value !== null;

const schemasIn = (value: unknown): JsonSchema[] => (Array.isArray(value) ? value.filter(isSchema) : []);

const numberIn = (schema: JsonSchema, name: string, otherwise: number): number => {
  const value = schema[name];
  return typeof value === 'number' ? value : otherwise;
};

/** Texts that programs often handle wrongly. */
const oddTexts = [
  '',
  ' ',
  '\0',
  '\ud800',
  '../..',
  '%00',
  "'; --",
  '$1',
  '\\',
  '__proto__',
  'null',
  '٣',
  'ﬀ',
  '\u202e',
  'a'.repeat(5_000),
  '9'.repeat(400),
];

const oddText = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: 'binary', maxLength: 40 }));

const odd: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<Json>(0, -1, 1e308, 2 ** 53, -0, [], {}, null, true, {
    ['__proto__']: 1,
    constructor: { prototype: 1 },
  }),
);

class Values {
  private readonly components: SchemaComponents;
  private readonly known: Readonly<Record<string, unknown>>;
  constructor(components: SchemaComponents, known: Readonly<Record<string, unknown>>) {
    this.components = components;
    this.known = known;
  }

  of(schema: JsonSchema, name = ''): fc.Arbitrary<unknown> {
    const named = this.known[name];
    const meant =
      named === undefined
        ? this.meant(schema)
        : fc.oneof({ weight: 4, arbitrary: fc.constant(named) }, this.meant(schema));
    return fc.oneof({ weight: 12, arbitrary: meant }, { weight: 1, arbitrary: odd });
  }

  private meant(schema: JsonSchema): fc.Arbitrary<unknown> {
    const reference = schema['$ref'];
    if (typeof reference === 'string') return this.of(this.components.get(reference.split('/').at(-1) ?? '') ?? {});
    if ('const' in schema) return fc.constant(schema['const']);
    if (Array.isArray(schema['enum'])) return fc.constantFrom(...schema['enum']);
    const choices = [...schemasIn(schema['anyOf']), ...schemasIn(schema['oneOf'])];
    if (choices.length > 0) return fc.oneof(...choices.map((choice) => this.of(choice)));
    switch (schema['type']) {
      case 'string':
        return textOf(schema);
      case 'integer':
        return fc.integer({
          min: numberIn(schema, 'minimum', -(2 ** 53)),
          max: numberIn(schema, 'maximum', 2 ** 53 - 1),
        });
      case 'number':
        return fc.double({ noNaN: true, noDefaultInfinity: true });
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return fc.array(this.of(isSchema(schema['items']) ? schema['items'] : {}), {
          maxLength: Math.min(numberIn(schema, 'maxItems', 4) + 1, 60),
        });
      case 'object':
        return this.object(schema);
      default:
        return odd;
    }
  }

  private object({ properties, additionalProperties, required }: JsonSchema): fc.Arbitrary<unknown> {
    const members = isSchema(properties)
      ? Object.fromEntries(
          Object.entries(properties).map(([name, member]) => [name, this.of(isSchema(member) ? member : {}, name)]),
        )
      : {};
    const needed = Array.isArray(required) ? required.filter((name) => name in members) : [];
    const declared = fc.oneof(
      { weight: 8, arbitrary: fc.record(members, { requiredKeys: needed }) },
      { weight: 1, arbitrary: fc.record(members, { requiredKeys: [] }) },
    );
    if (isSchema(additionalProperties))
      return fc.dictionary(oddOrShortText, this.of(additionalProperties), { maxKeys: 45 });
    const more = fc.dictionary(oddText, odd, { maxKeys: 1 });
    return fc.oneof(
      { weight: 12, arbitrary: declared },
      { weight: 1, arbitrary: fc.tuple(declared, more).map(([own, extra]) => ({ ...own, ...extra })) },
    );
  }
}

const oddOrShortText = fc.oneof(fc.string({ minLength: 1, maxLength: 10 }), oddText);

function textOf(schema: JsonSchema): fc.Arbitrary<string> {
  const { format, pattern } = schema;
  if (format === 'uuid') return fc.uuid({ version: 7 });
  if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
  if (format === 'uri') return fc.webUrl();
  const most = Math.min(numberIn(schema, 'maxLength', 100), 3_000);
  const plain = fc.string({
    unit: 'grapheme',
    minLength: Math.min(numberIn(schema, 'minLength', 0), most),
    maxLength: most,
  });
  if (typeof pattern !== 'string') return plain;
  try {
    return fc.oneof({ weight: 4, arbitrary: fc.stringMatching(new RegExp(pattern)) }, plain);
  } catch {
    // The pattern has a part for which no texts can be generated.
    return plain;
  }
}
