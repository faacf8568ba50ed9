import {
  type BodyRefusals,
  bodyRefusalsOf,
  type EndpointDefinition,
  type PathParameter,
} from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import type { ProblemField } from '@drydock/contracts/platform/problems';
import { z } from 'zod';
import { assertJsonContentType, parseJsonBody } from './json-body';

/** The most errors about fields in an answer, because a hostile body may have a thousand wrong fields. */
const issuesMax = 20;

type Issue = z.core.$ZodIssue;

const escapeSegment = (segment: PropertyKey): string => String(segment).replaceAll('~', '~0').replaceAll('/', '~1');
/** A JSON pointer (RFC 6901) into the body. */
const bodyPointer = (path: readonly PropertyKey[]): string =>
  path.map((segment) => `/${escapeSegment(segment)}`).join('');
const queryPointer = (path: readonly PropertyKey[]): string => `?${path.map(String).join('.')}`;

/** Whether the field of an issue is missing. A field with a wrong value is not missing. */
function isMissing(input: unknown, path: readonly PropertyKey[]): boolean {
  let value = input;
  for (const segment of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = Object.getOwnPropertyDescriptor(value, segment)?.value;
  }
  return value === undefined;
}

function fieldsOf(issue: Issue, input: unknown, pointer: (path: readonly PropertyKey[]) => string): ProblemField[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      pointer: pointer([...issue.path, key]),
      code: 'unknown_field',
      detail: 'There is no such field.',
    }));
  }
  if (isMissing(input, issue.path))
    return [{ pointer: pointer(issue.path), code: 'required', detail: 'This field is required.' }];
  return [{ pointer: pointer(issue.path), code: issue.code, detail: issue.message }];
}

/** The errors for each field, in the contract's words. They never contain the value of a field. */
function fieldIssues(error: z.ZodError, input: unknown, place: 'body' | 'query'): ProblemField[] {
  const pointer = place === 'body' ? bodyPointer : queryPointer;
  return error.issues.flatMap((issue) => fieldsOf(issue, input, pointer)).slice(0, issuesMax);
}

interface RawRequest {
  params: Readonly<Record<string, string | string[] | undefined>>;
  /** The query string without the `?`. */
  search: string;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  body: Uint8Array;
}

interface Parsed {
  params: Record<string, string>;
  query: Record<string, unknown> | undefined;
  body: Record<string, unknown> | undefined;
  /** The value of the JSON body as it was sent, without defaults or normalisation. */
  sentBody: unknown;
}

const emptyBody = {};
const noQuery = z.strictObject({});
/** The id that no record has. It is a UUIDv7 of the first possible millisecond. */
export const nobodysId = '00000000-0000-7000-8000-000000000000';
/**
 * Makes a schema refuse unknown fields, unless the schema has a rule for them. A misspelt option must not be silently
 * ignored.
 */
const strictly = (schema: z.ZodObject): z.ZodObject => (schema.def.catchall === undefined ? schema.strict() : schema);

/**
 * Makes the parser of requests to an endpoint. It throws 422 for a wrong query or body, and the endpoint's own code for
 * a body that cannot be read. It replaces a malformed id with the id that no record has, so that a malformed and an
 * unknown id get the same answer.
 */
export function requestParser(endpoint: EndpointDefinition): (raw: RawRequest) => Parsed {
  const readQuery = queryParser(endpoint);
  const body = endpoint.body === undefined ? undefined : strictly(endpoint.body);
  const refusals = bodyRefusalsOf(endpoint);
  const params: Array<[string, PathParameter]> = Object.entries(endpoint.params ?? {});
  return (raw) => ({
    query: readQuery(raw.search),
    ...(body === undefined ? { body: undefined, sentBody: undefined } : parseBody(body, raw, refusals)),
    params: Object.fromEntries(params.map(([name, parameter]) => [name, readParameter(parameter, raw.params[name])])),
  });
}

/**
 * Makes the parser of an endpoint's query string. For an endpoint without parameters the parser returns undefined. It
 * throws 422 for a wrong or repeated parameter, and for an undeclared one unless the endpoint ignores those.
 */
export function queryParser({ query, undeclaredQuery }: EndpointDefinition): (search: string) => Parsed['query'] {
  if (query !== undefined) {
    // The schema is made once, because it compiles its parser at its first use.
    const schema = strictly(query);
    return (search) => parseQuery(schema, search);
  }
  return (search) => {
    if (search !== '' && undeclaredQuery === 'refused') parseQuery(noQuery, search);
    return undefined;
  };
}

/**
 * The value of a path parameter in its canonical form. A malformed id becomes the id that no record has, and a
 * malformed name becomes ''.
 */
function readParameter(parameter: PathParameter, raw: string | string[] | undefined): string {
  const value = parameter.schema.safeParse(raw);
  if (value.success) return value.data;
  return 'notFound' in parameter ? nobodysId : '';
}

function parseQuery(schema: z.ZodObject, search: string): Record<string, unknown> {
  const given: Record<string, string> = Object.create(null);
  const repeated: ProblemField[] = [];
  if (search !== '') {
    for (const [name, value] of new URLSearchParams(search)) {
      if (name in given) repeated.push({ pointer: `?${name}`, code: 'repeated', detail: 'Give this parameter once.' });
      given[name] = value;
    }
  }
  // `given` has no prototype, so that `in` finds only names that were sent. The schema gets an ordinary object.
  const input = { ...given };
  const parsed = schema.safeParse(input);
  if (parsed.success && repeated.length === 0) return parsed.data;
  const wrong = parsed.success ? [] : fieldIssues(parsed.error, input, 'query');
  throw problem('invalid_request', { errors: [...repeated, ...wrong].slice(0, issuesMax) });
}

function parseBody(
  schema: z.ZodObject,
  raw: RawRequest,
  { notJson, otherType }: BodyRefusals,
): Pick<Parsed, 'body' | 'sentBody'> {
  let input: unknown = emptyBody;
  if (raw.body.length > 0) {
    assertJsonContentType(otherType, raw.contentType, raw.contentEncoding);
    input = parseJsonBody(raw.body, notJson);
  }
  const parsed = schema.safeParse(input);
  if (parsed.success) return { body: parsed.data, sentBody: input };
  throw problem('invalid_request', { errors: fieldIssues(parsed.error, input, 'body') });
}
