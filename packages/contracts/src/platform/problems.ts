import { z } from 'zod';
import { agencyProblems } from '../problems/agency-problems';
import { computeProblems } from '../problems/compute-problems';
import { databaseProblems } from '../problems/database-problems';
import { siteProblems, vendorProblems } from '../problems/site-problems';

interface ProblemDefinition {
  status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 415 | 422 | 429 | 431 | 500 | 503;
  title: string;
  /** The caller's next step. The page `/problems/{code}` shows it, and it is the default of `detail`. */
  advice: string;
  /**
   * Whether the same request may succeed later. A refusal with a transient code is not stored for an Idempotency-Key,
   * so that a retry is carried out.
   */
  transient?: true;
}

/** Checks every entry, and keeps the codes and statuses as literal types. */
const define = <const T extends Record<string, ProblemDefinition>>(
  codes: T,
): { readonly [Code in keyof T]: ProblemDefinition & { readonly status: T[Code]['status'] } } => codes;

/** Every code with which Drydock can answer, with its status, its title, and the next step for the caller. */
export const problems = define({
  // Authentication, authorisation, quotas, preconditions
  unauthenticated: {
    status: 401,
    title: 'A valid API key is needed',
    advice:
      'Send your API key as "Authorization: Bearer <token>". If it was revoked, has expired or was mistyped, ' +
      'mint or copy a new one. A key with allowed_ips works from there only.',
  },
  permission_denied: {
    status: 403,
    title: 'The key lacks a permission',
    advice:
      'Use a key that holds the permission named in errors, or ask an administrator of your organisation for one.',
  },
  org_out_of_scope: {
    status: 403,
    title: 'The organisation is not within your reach',
    advice:
      'Name your own organisation or one below it in which your key holds the permission; GET /v1/orgs lists them.',
  },
  scope_not_held: {
    status: 403,
    title: 'Your key does not hold all of these permissions',
    advice:
      'Leave out the permissions listed in errors, or use a key that holds them; GET /v1/me shows what yours holds.',
  },
  own_limits: {
    status: 403,
    title: 'A key cannot lift its own limits',
    advice: 'Use another key of your organisation that manages keys and has no such limit.',
  },
  sandbox_key: {
    status: 403,
    title: 'A sandbox key manages sandbox keys only',
    advice: 'Set sandbox to true, or use a live key.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    advice: 'Wait for the seconds in Retry-After, then send the request again.',
    transient: true,
  },
  quota_exceeded: {
    status: 422,
    title: 'The organisation has as many as it may',
    advice: 'Delete what is not needed any more, or ask support for more; limit and used are in this answer.',
    transient: true,
  },
  too_many_streams: {
    status: 429,
    title: 'Too many event streams',
    advice:
      'Close streams that you do not need, or ask for the workflow itself from time to time; ' +
      'then try again after Retry-After.',
    transient: true,
  },
  precondition_failed: {
    status: 412,
    title: 'It is not what If-Match names any more',
    advice:
      'Nothing was changed. Read it again, make your change to what it is now, ' +
      'and send that with its ETag as it came, quotes included.',
  },
  // Requests that are not valid
  invalid_request: {
    status: 422,
    title: 'The request is not valid',
    advice: 'Correct the fields named in errors and send the request again.',
  },
  malformed_json: {
    status: 400,
    title: 'The body is not valid JSON',
    advice: 'Send one JSON object, UTF-8 encoded, without duplicate keys.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The body must be JSON',
    advice: 'Send Content-Type: application/json and no Content-Encoding.',
  },
  invalid_json: {
    status: 422,
    title: 'The body is not valid JSON',
    advice: 'Send one JSON object, UTF-8 encoded, without duplicate keys.',
  },
  invalid_content_type: {
    status: 422,
    title: 'The body must be JSON',
    advice: 'Send Content-Type: application/json and no Content-Encoding.',
  },
  body_too_large: { status: 422, title: 'The body is too large', advice: 'Send at most 100 KiB (102,400 bytes).' },
  invalid_limit: {
    status: 422,
    title: 'The limit is not valid',
    advice: 'Send a whole number from 1; above 100 it counts as 100.',
  },
  invalid_cursor: {
    status: 422,
    title: 'The cursor is not valid',
    advice: 'Start again without a cursor. A cursor lasts 72 hours and belongs to one key and one filter.',
  },
  idempotency_key_invalid: {
    status: 422,
    title: 'The Idempotency-Key is not valid',
    advice: 'Send 1 to 255 visible ASCII characters, once; a UUID is a good choice.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'The Idempotency-Key was used for another request',
    advice: 'Use a fresh key for a different body; the same key answers only for the body it was first sent with.',
  },
  idempotency_in_flight: {
    status: 409,
    title: 'The first request with this Idempotency-Key is still running',
    advice: 'Send the same request again after Retry-After; it will answer what the first one answered.',
    transient: true,
  },
  scope_widened: {
    status: 422,
    title: 'A permission cannot be added to a key',
    advice: 'Name only permissions that the key has. For more, mint another key.',
  },
  unknown_scope: {
    status: 422,
    title: 'An unknown permission was asked for',
    advice: 'GET /v1/permissions lists the permissions there are.',
  },
  // Paths that do not exist, and the resources of the keys service
  route_not_found: { status: 404, title: 'There is no such path', advice: 'See /docs for the paths there are.' },
  method_not_allowed: {
    status: 405,
    title: 'The path does not take this method',
    advice: 'Use one of the methods in Allow.',
  },
  api_key_not_found: {
    status: 404,
    title: 'No such API key',
    advice: 'GET /v1/api-keys lists the keys you can manage.',
  },
  org_not_found: {
    status: 404,
    title: 'No such organisation',
    advice: 'GET /v1/orgs lists the organisations you can manage.',
  },
  event_not_found: {
    status: 404,
    title: 'No such event',
    advice: 'GET /v1/events lists the events of the last 30 days.',
  },
  webhook_not_found: { status: 404, title: 'No such webhook', advice: 'GET /v1/webhooks lists your webhooks.' },
  webhook_delivery_not_found: {
    status: 404,
    title: 'No such delivery',
    advice: 'GET /v1/webhooks/{webhookId}/deliveries lists those of the last 30 days.',
  },
  webhook_url_refused: {
    status: 422,
    title: 'Events cannot be sent to this URL',
    advice: 'Give a URL that begins with https:// and leads to the public internet.',
  },
  webhook_limit: {
    status: 422,
    title: 'There are as many webhooks as there may be',
    advice: 'Delete one that you no longer need.',
  },
  webhook_disabled: {
    status: 422,
    title: 'The webhook is switched off',
    advice: 'Switch it on again by PATCH with enabled: true, then try again.',
  },
  workflow_not_found: { status: 404, title: 'No such workflow', advice: "List the resource's workflows." },
  // Refusals of input that is no valid HTTP request
  malformed_request: {
    status: 400,
    title: 'This is not a valid HTTP request',
    advice: 'Check the client or the proxy in between: one Host, one length, each header of the body once.',
  },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    advice: 'Send it again on a new connection.',
    transient: true,
  },
  headers_too_large: {
    status: 431,
    title: 'The headers are too large',
    advice: 'Send at most 100 headers, and at most 16 KiB of them with the URL.',
  },
  // The state of the resource, and the permissions of organisations
  operation_in_progress: {
    status: 422,
    title: 'Another operation is running on this resource',
    advice: 'Follow the workflow named in workflow_id to its end, then try again.',
    transient: true,
  },
  needs_attention: {
    status: 422,
    title: 'An earlier operation on this resource waits for staff',
    advice: 'Staff retry or abandon the workflow named in workflow_id; the resource stays locked until then.',
    transient: true,
  },
  workflow_not_waiting: {
    status: 422,
    title: 'The workflow does not wait for staff',
    advice: 'Only a workflow whose status is needs_attention can be retried or abandoned.',
    transient: true,
  },
  unknown_parent: {
    status: 422,
    title: 'No such parent organisation',
    advice: 'Name your own organisation or one below it.',
  },
  org_permission_not_held: {
    status: 422,
    title: 'An organisation cannot be allowed more than its parent',
    advice: 'Leave out the permissions listed in errors.',
  },
  org_top_loses_permission: {
    status: 422,
    title: 'An organisation at the top cannot give up a permission',
    advice:
      'Add the permissions listed in errors to the list: no key could give them back. Take them from its keys instead.',
  },
  // Failures of a workflow. They are shown with the workflow, and no request is answered with them
  step_failed: {
    status: 500,
    title: 'A step failed',
    advice: 'Nothing was lost: see the steps of the workflow. Try again, or ask support with the request id.',
  },
  abandoned: {
    status: 500,
    title: 'Staff abandoned the operation',
    advice: 'Ask support what state the resource was left in.',
  },
  superseded: {
    status: 500,
    title: 'Later work has changed the resource',
    advice:
      'Drydock itself was restored from a backup that is older than the resource, which was left as it is. ' +
      'Look at it, and ask again.',
  },
  start_by_passed: {
    status: 503,
    title: 'The work was not taken up in time',
    advice: 'Nothing was started. Try again.',
    transient: true,
  },
  ...siteProblems,
  ...vendorProblems,
  ...computeProblems,
  ...agencyProblems,
  ...databaseProblems,
  // Failures of Drydock itself or of something that it needs
  dependency_unavailable: {
    status: 503,
    title: 'Something that Drydock needs is unavailable',
    advice: 'Nothing was started. Try again after Retry-After.',
    transient: true,
  },
  overloaded: {
    status: 503,
    title: 'Too many requests at once',
    advice: 'Nothing was started. Try again after Retry-After.',
    transient: true,
  },
  internal_error: {
    status: 500,
    title: 'Something went wrong on our side',
    advice: 'Try again; if it stays, tell support the request id. An Idempotency-Key makes the retry safe.',
    transient: true,
  },
});

export type ProblemCode = keyof typeof problems;

export type ProblemCodeOf<Status extends number> = {
  [Code in ProblemCode]: (typeof problems)[Code]['status'] extends Status ? Code : never;
}[ProblemCode];

export const problemCodes = Object.keys(problems).filter((code): code is ProblemCode => code in problems);

/** One wrong field. `pointer` is a JSON pointer into the body, or `?name` for a query parameter. */
export const problemFieldSchema = z
  .strictObject({
    pointer: z
      .string()
      .describe(
        'JSON Pointer (RFC 6901) to the field of the body, or `?name` for a parameter; empty for the request itself.',
      ),
    code: z.string().describe('Stable name of what is wrong with it.'),
    detail: z.string().describe('What is wrong with it, for people.'),
  })
  .meta({ id: 'ProblemField' });

/**
 * The problem of RFC 9457 with the members that we add to all problems. Some problems have more members, such as
 * `workflow_id`, `reason_code` or `dependency`.
 */
export const problemSchema = z
  .looseObject({
    type: z.string().describe('Path of the page about the code.'),
    title: z.string().describe('The code in words; the same for every request.'),
    status: z.int().describe('HTTP status of the answer.'),
    detail: z.string().describe('What is wrong with this request and what to do next, for people.'),
    code: z.enum(problemCodes).describe('Stable name of the problem. Decide by it.'),
    request_id: z.string().describe('X-Request-Id of the answer. Tell it to support.'),
    errors: z.array(problemFieldSchema).optional().describe('The fields that are wrong.'),
  })
  .meta({ id: 'Problem' });
export type ProblemBody = z.infer<typeof problemSchema>;
export type ProblemField = z.infer<typeof problemFieldSchema>;

const introduction = `# Errors

Written by \`npm run openapi\` from \`packages/contracts/src/platform/problems.ts\`; a test keeps it current.

Every refusal is \`application/problem+json\` (RFC 9457) with \`code\`, \`title\`, \`status\`, \`detail\`, \
\`request_id\` and, where fields were wrong, \`errors\`.
\`code\` is stable: decide by it. \`detail\` is for people and may change. \
The gateway serves each row at \`/problems/{code}\`.
A code that **passes** may be gone when you wait; it is never stored for an Idempotency-Key, \
so the same request is executed when you send it again.
`;

/** All problem codes as one Markdown page, in the order of `problems`. */
export function describeProblems(): string {
  const rows = problemCodes.map((code) => {
    const { status, title, advice, transient = false } = problems[code];
    return `| \`${code}\` | ${status} | ${title} | ${advice} | ${transient ? 'yes' : ''} |`;
  });
  return (
    `${introduction}\n| code | status | what happened | what to do | passes |\n` +
    `|---|---|---|---|---|\n${rows.join('\n')}\n`
  );
}
