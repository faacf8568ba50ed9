import { hash } from 'node:crypto';
import { type EndpointDefinition, hasEntityTag } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import type { Answer } from './answer';

/** Names a representation by its very bytes: a strong validator (RFC 9110) that needs no column and no clock, and differs whenever anything that is shown does. */
export const entityTagOf = (text: string | Uint8Array): string => `"${hash('sha256', text, 'base64url').slice(0, 27)}"`;

const tagsOf = (given: string): string[] => given.split(',').map((one) => one.trim());
const opaqueOf = (tag: string): string => tag.replace(/^W\//, '');

/** Whether `If-None-Match` names the representation. Compared weakly: something on the way may have compressed the answer, and said so. */
export const hasAlready = (ifNoneMatch: string | undefined, tag: string): boolean =>
  ifNoneMatch !== undefined && tagsOf(ifNoneMatch).some((one) => one === '*' || opaqueOf(one) === opaqueOf(tag));

/** The answer with its validator; to a reader who has it already, only that. */
export function tagged(endpoint: EndpointDefinition, answer: Answer, ifNoneMatch: string | undefined): Answer {
  if (answer.status !== 200 || !hasEntityTag(endpoint)) return answer;
  const etag = entityTagOf(answer.text);
  if (endpoint.method === 'GET' && hasAlready(ifNoneMatch, etag)) return { status: 304, headers: { etag }, text: '' };
  return { ...answer, headers: { ...answer.headers, etag } };
}

/**
 * Throws 412 unless `If-Match` names what GET would give now. Compared strongly, as RFC 9110 has it: a weak validator names nothing that may be overwritten.
 * `read` is asked only when there is such a header, by a handler that holds the record.
 */
export async function assertMatch(ifMatch: string | undefined, read: () => unknown): Promise<void> {
  if (ifMatch === undefined) return;
  const tags = tagsOf(ifMatch);
  if (tags.includes('*') || tags.includes(entityTagOf(JSON.stringify(await read())))) return;
  throw problem('precondition_failed');
}
