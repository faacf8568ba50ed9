import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import type { Answer } from '../http/answer';
import type { HandlerRequest, Reply, Route } from '../http/route';

type AnyRequest = HandlerRequest<EndpointDefinition>;

/**
 * The part of the reply that may be stored. Throws, which rolls the effect back, if the whole reply cannot be made from
 * that part again: a secret that cannot be replayed would be lost with the first broken connection.
 */
export function keptReply(route: Route<never>, request: AnyRequest, reply: Reply): Reply {
  const { replaySecret } = route;
  if (replaySecret === undefined || request.idempotencyKey === undefined) return reply;
  const kept: unknown = JSON.parse(JSON.stringify(replaySecret.remove(reply.body)));
  const again = replaySecret.rehydrate(kept, request.idempotencyKey, request);
  if (JSON.stringify(again) !== JSON.stringify(reply.body))
    throw new Error('rehydrate does not give back what remove was given');
  return { ...reply, body: kept };
}

/** The stored answer with its secret in place again. Refusals are stored whole. */
export function rehydratedAnswer(route: Route<never>, request: AnyRequest, rawKey: string, answer: Answer): Answer {
  if (route.replaySecret === undefined || answer.status >= 300) return answer;
  return { ...answer, text: JSON.stringify(route.replaySecret.rehydrate(JSON.parse(answer.text), rawKey, request)) };
}
