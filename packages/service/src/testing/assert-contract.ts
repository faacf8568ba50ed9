import assert from 'node:assert/strict';
import { endpoints } from '@drydock/contracts/endpoints';
import { type EndpointDefinition, hasEntityTag, problemCodesOf } from '@drydock/contracts/platform/endpoint';
import { problemSchema, problems } from '@drydock/contracts/platform/problems';
import { isAt, sortRoutes } from '../http/route';

const routes = sortRoutes(endpoints.map((endpoint) => ({ endpoint })));
/** Codes that any request can be answered with before its endpoint is known. */
const transportCodes: readonly string[] = ['malformed_request', 'request_timeout', 'headers_too_large'];

export interface AnswerToCheck {
  status: number;
  header(name: string): string | null | undefined;
  /** The parsed JSON; undefined if there is no body. */
  body: unknown;
}

/** The endpoint of a concrete path, with or without its query. */
export const endpointAt = (method: string, path: string): EndpointDefinition | undefined =>
  routes.find(({ endpoint }) => endpoint.method === method && isAt(endpoint.path, path.split('?')[0] ?? ''))?.endpoint;

/**
 * Throws unless the contract promises the answer for the endpoint: its status, type and schema, or one of the
 * endpoint's codes with the status of that code.
 */
export function assertContract(endpoint: EndpointDefinition, { status, header, body }: AnswerToCheck): void {
  const what = `${endpoint.id} answered ${status} ${JSON.stringify(body)}, which is not in its contract`;
  const { response } = endpoint;
  const { contentType = 'application/json' } = response;
  if (status >= 400) {
    const told = problemSchema.safeParse(body).data;
    assert.ok(told !== undefined && header('content-type') === 'application/problem+json', what);
    assert.ok(
      [...problemCodesOf(endpoint), ...transportCodes].includes(told.code) && problems[told.code].status === status,
      what,
    );
    // A caller must learn what to send, and Zod's default message for a regular expression or a union of types does not
    // say that.
    assert.ok(!told.errors?.some(({ detail }) => /^Invalid input$|must match pattern/.test(detail)), what);
    return;
  }
  if (status === 304 && endpoint.method === 'GET' && hasEntityTag(endpoint)) return;
  if (status === 204 && contentType === 'text/event-stream') return;
  assert.equal(status, response.status, what);
  assert.equal(header('content-type')?.split(';')[0] ?? '', status === 204 ? '' : contentType, what);
  assert.equal(header('etag') != null, hasEntityTag(endpoint), what);
  for (const value of contentType === 'text/event-stream' ? eventsIn(body, what) : [body])
    assert.deepEqual(response.schema?.safeParse(value).error?.issues, undefined, what);
}

/**
 * The data of a stream's events. The event `ready` is left out, because its data says nothing. A line `:` only keeps
 * the connection alive.
 */
function eventsIn(body: unknown, what: string): unknown[] {
  assert.match(String(body), /^(?:(?:id: .+\n)?(?:event: .+\n)?data: \{.*\}\n\n|:\n\n)*$/, what);
  return [...String(body).matchAll(/^(?:event: (?<name>.+)\n)?data: (?<data>.+)$/gm)].flatMap(({ groups = {} }) =>
    groups['name'] === 'ready' ? [] : [JSON.parse(groups['data'] ?? '')],
  );
}
