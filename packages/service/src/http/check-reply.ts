import { type EndpointDefinition, problemCodesOf } from '@drydock/contracts/platform/endpoint';
import { Problem } from '@drydock/contracts/platform/problem';
import type { Reply } from './route';

const nothing = (): void => undefined;

/**
 * Compares a handler's reply with the endpoint's contract; throws an error that becomes a 500, so that a test sees it.
 * `enabled` false: does nothing.
 */
export function replyChecks(
  endpoint: EndpointDefinition,
  enabled: boolean,
): { reply(reply: Reply): void; refusal(error: unknown): void } {
  if (!enabled) return { reply: nothing, refusal: nothing };
  const { status, schema } = endpoint.response;
  const codes = new Set(problemCodesOf(endpoint));
  return {
    reply: (reply) => {
      if (reply.status !== status)
        throw new Error(`${endpoint.id} answered ${reply.status}, its contract says ${status}`);
      if (schema === undefined || endpoint.response.contentType !== undefined) return;
      // Through JSON, as the caller will see it.
      const parsed = schema.safeParse(reply.body === undefined ? undefined : JSON.parse(JSON.stringify(reply.body)));
      if (!parsed.success)
        throw new Error(`${endpoint.id} answered what its contract does not know: ${parsed.error.message}`);
    },
    refusal: (error) => {
      if (error instanceof Problem && !codes.has(error.code)) {
        throw new Error(`${endpoint.id} refused with ${error.code}, which its contract does not list`, {
          cause: error,
        });
      }
    },
  };
}
