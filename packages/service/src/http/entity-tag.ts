import { hash } from 'node:crypto';
import { type EndpointDefinition, hasEntityTag } from '@drydock/contracts/platform/endpoint';
import { problem } from '@drydock/contracts/platform/problem';
import type { Answer } from './answer';

/**
 * Identifies an answer by its bytes, so the tag changes whenever anything visible changes. The tag is a strong
 * validator (RFC 9110) that needs no column in the database and no clock.
 */
export const entityTagOf = (text: string | Uint8Array): string => `"${hash('sha256', text, 'base64url').slice(0, 27)}"`;

const tagsOf = (given: string): string[] => given.split(',').map((one) => one.trim());
const opaqueOf = (tag: string): string => tag.replace(/^W\//, '');

/**
 * Whether `If-None-Match` names the answer. The comparison is weak, because a proxy may have compressed the answer and
 * marked its tag as weak.
 */
export const hasAlready = (ifNoneMatch: string | undefined, tag: string): boolean =>
  ifNoneMatch !== undefined && tagsOf(ifNoneMatch).some((one) => one === '*' || opaqueOf(one) === opaqueOf(tag));

/** Adds the entity tag to a 200 of an endpoint that has tags. A GET whose client has the answer already gets 304. */
export function tagged(endpoint: EndpointDefinition, answer: Answer, ifNoneMatch: string | undefined): Answer {
  if (answer.status !== 200 || !hasEntityTag(endpoint)) return answer;
  const etag = entityTagOf(answer.text);
  if (endpoint.method === 'GET' && hasAlready(ifNoneMatch, etag)) return { status: 304, headers: { etag }, text: '' };
  return { ...answer, headers: { ...answer.headers, etag } };
}

/**
 * Throws 412 if `ifMatch` is given and does not name the present answer to GET, which `read` returns. The comparison is
 * strong, by RFC 9110, because a weak validator must not permit an overwrite. The caller must have locked the record,
 * so that it cannot change between this check and the overwrite.
 */
export async function assertMatch(ifMatch: string | undefined, read: () => unknown): Promise<void> {
  if (ifMatch === undefined) return;
  const tags = tagsOf(ifMatch);
  if (tags.includes('*') || tags.includes(entityTagOf(JSON.stringify(await read())))) return;
  throw problem('precondition_failed');
}
