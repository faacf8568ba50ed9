import type { ProblemField } from '@drydock/contracts/platform/problems';
import type { z } from 'zod';

/** Limits the answer to a hostile body with a thousand wrong fields. */
const issuesMax = 20;

type Issue = z.core.$ZodIssue;

const escapeSegment = (segment: PropertyKey): string => String(segment).replaceAll('~', '~0').replaceAll('/', '~1');
/** RFC 6901 into the body. */
const bodyPointer = (path: readonly PropertyKey[]): string =>
  path.map((segment) => `/${escapeSegment(segment)}`).join('');
const queryPointer = (path: readonly PropertyKey[]): string => `?${path.map(String).join('.')}`;

/** Whether the field of an issue is missing, rather than wrong. */
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

/** The errors field by field, in the contract's words. They never contain the value that was sent. */
export function fieldIssues(error: z.ZodError, input: unknown, place: 'body' | 'query'): ProblemField[] {
  const pointer = place === 'body' ? bodyPointer : queryPointer;
  return error.issues.flatMap((issue) => fieldsOf(issue, input, pointer)).slice(0, issuesMax);
}
