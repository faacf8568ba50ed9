import type { EndpointDefinition, PathParameter } from '@drydock/contracts/endpoint';
import { problem } from '@drydock/contracts/problem';
import type { ProblemField } from '@drydock/contracts/problems';
import type { z } from 'zod';
import { fieldIssues } from './field-issues';
import { assertJsonContentType, parseJsonBody } from './json-body';

export interface RawRequest {
  params: Readonly<Record<string, string | string[] | undefined>>;
  /** Without the `?`. */
  search: string;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  body: Uint8Array;
}

export interface Parsed {
  params: Record<string, string>;
  query: Record<string, unknown> | undefined;
  body: Record<string, unknown> | undefined;
}

const emptyBody = {};
/** A schema that says nothing about other fields refuses them: a misspelt option must not be silently ignored. */
const strictly = (schema: z.ZodObject): z.ZodObject => (schema.def.catchall === undefined ? schema.strict() : schema);

/**
 * Builds, once per endpoint, what turns a raw request into its parts.
 * Throws 422 for query and body first and then, for a malformed id, the very 404 of a record that does not exist.
 */
export function requestParser(endpoint: EndpointDefinition): (raw: RawRequest) => Parsed {
  const query = endpoint.query === undefined ? undefined : strictly(endpoint.query);
  const body = endpoint.body === undefined ? undefined : strictly(endpoint.body);
  const params: Array<[string, PathParameter]> = Object.entries(endpoint.params ?? {});
  return (raw) => ({
    query: query === undefined ? undefined : parseQuery(query, raw.search),
    body: body === undefined ? undefined : parseBody(body, raw),
    params: Object.fromEntries(
      params.map(([name, { schema, notFound }]) => {
        const value = schema.safeParse(raw.params[name]);
        if (!value.success) throw problem(notFound);
        return [name, value.data];
      }),
    ),
  });
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
  // A plain object: zod tells records from class instances by their prototype.
  const input = { ...given };
  const parsed = schema.safeParse(input);
  if (parsed.success && repeated.length === 0) return parsed.data;
  throw problem('invalid_request', { errors: [...repeated, ...(parsed.success ? [] : fieldIssues(parsed.error, input, 'query'))] });
}

function parseBody(schema: z.ZodObject, raw: RawRequest): Record<string, unknown> {
  let input: unknown = emptyBody;
  if (raw.body.length > 0) {
    assertJsonContentType(raw.contentType, raw.contentEncoding);
    input = parseJsonBody(raw.body);
  }
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw problem('invalid_request', { errors: fieldIssues(parsed.error, input, 'body') });
}
