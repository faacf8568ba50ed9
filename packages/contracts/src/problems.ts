import { z } from 'zod';
import { computeProblems } from './compute-problems';
import { define } from './problem-definition';

/** Every code that Drydock can answer with. One registry: status, title, what to do next. */
export const problems = define({
  // Authentication, authorisation, quotas
  unauthenticated: {
    status: 401,
    title: 'A valid API key is needed',
    advice: 'Send your API key as "Authorization: Bearer <token>". If it was revoked or mistyped, mint or copy a new one.',
  },
  permission_denied: {
    status: 403,
    title: 'The key lacks a permission',
    advice: 'Use a key that holds the permission named in errors, or ask an administrator of your organisation for one.',
  },
  org_out_of_scope: {
    status: 403,
    title: 'The organisation is not within your reach',
    advice: 'Name your own organisation or one below it in which your key holds the permission; GET /v1/orgs lists them.',
  },
  scope_not_held: {
    status: 403,
    title: 'A key cannot grant what its creator does not hold',
    advice: 'Leave out the scopes listed in errors, or mint the key with a key that holds them; GET /v1/me shows what yours holds.',
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
  on_demand_limit_reached: {
    status: 429,
    title: 'The allowance of on-demand backups is spent',
    advice: 'Wait until on_demand_next_at of the backup surface; the oldest counted backup leaves the rolling 24 hours then.',
    transient: true,
  },
  // Requests that cannot be understood
  invalid_request: {
    status: 422,
    title: 'The request is not valid',
    advice: 'Correct the fields named in errors and send the request again.',
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
  body_too_large: { status: 422, title: 'The body is too large', advice: 'Send at most 100 kB.' },
  invalid_header: { status: 422, title: 'A header is not valid', advice: 'Send each header once and in the form the documentation gives.' },
  invalid_limit: { status: 422, title: 'The limit is not valid', advice: 'Send a whole number from 1; above 100 it counts as 100.' },
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
  unknown_scope: {
    status: 422,
    title: 'An unknown permission was asked for',
    advice: 'GET /v1/permissions lists the permissions there are.',
  },
  // Not there, or not yours
  route_not_found: { status: 404, title: 'There is no such path', advice: 'See /docs for the paths there are.' },
  method_not_allowed: { status: 405, title: 'The path does not take this method', advice: 'Use one of the methods in Allow.' },
  api_key_not_found: { status: 404, title: 'No such API key', advice: 'GET /v1/api-keys lists the keys you can manage.' },
  org_not_found: { status: 404, title: 'No such organisation', advice: 'GET /v1/orgs lists the organisations you can manage.' },
  site_not_found: { status: 404, title: 'No such site', advice: 'GET /v1/sites lists your sites.' },
  deleted_site_not_found: { status: 404, title: 'No such deleted site', advice: 'GET /v1/sites/deleted lists them.' },
  board_not_found: { status: 404, title: 'No such board', advice: 'GET /v1/agency/boards lists your boards.' },
  card_not_found: {
    status: 404,
    title: 'No such card on this board',
    advice: "List the board's cards, with archived=true those in the archive.",
  },
  workflow_not_found: { status: 404, title: 'No such workflow', advice: "List the resource's workflows." },
  no_vendor_package: {
    status: 404,
    title: 'The site has no hosting package at a vendor',
    advice: 'Only a site of platform vendor has one; restore any other site from its backups.',
  },
  // What never became a request
  malformed_request: { status: 400, title: 'The bytes are not a valid HTTP request', advice: 'Check the client or the proxy in between.' },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    advice: 'Send it again on a new connection.',
    transient: true,
  },
  headers_too_large: { status: 431, title: 'The headers are too large', advice: 'Send at most 16 kB of headers, the URL included.' },
  // The restore point that was named
  backup_not_found: { status: 422, title: 'No such backup of this site', advice: "Name a backup from the site's own list." },
  backup_not_completed: {
    status: 422,
    title: 'The backup has not completed',
    advice: 'Wait until its status is completed, or name another one.',
    transient: true,
  },
  backup_expired: { status: 422, title: 'The backup has expired', advice: 'Its data is gone; name a newer backup.' },
  offsite_not_configured: {
    status: 422,
    title: 'The site has no storage of yours for its copies',
    advice: 'Name a bucket with PUT /v1/sites/{siteId}/offsite first.',
    transient: true,
  },
  offsite_endpoint_refused: {
    status: 422,
    title: 'Drydock does not connect to this address',
    advice: 'Name an https endpoint on the public internet whose name leads to public addresses only; redirects are not followed.',
    transient: true,
  },
  offsite_credentials_rejected: {
    status: 422,
    title: 'Your storage rejected the credentials',
    advice: 'Send valid ones with PUT /v1/sites/{siteId}/offsite; they must be allowed to read, write and delete below the prefix.',
    transient: true,
  },
  offsite_bucket_unusable: {
    status: 422,
    title: 'The bucket cannot be used',
    advice: 'See that it exists in the region that you named and takes objects, then try again.',
    transient: true,
  },
  copy_not_found: { status: 422, title: 'No such copy of this site', advice: 'Name a copy that GET /v1/sites/{siteId}/offsite lists.' },
  copy_chain_incomplete: {
    status: 422,
    title: 'A copy that this one depends on is missing',
    advice: 'Put the missing objects back, or name another copy; a full one begins a new chain.',
    transient: true,
  },
  copy_tampered: {
    status: 422,
    title: 'The copy is not what was written',
    advice: 'Nothing was changed. Name a copy of another chain, or put the original objects back.',
    transient: true,
  },
  platform_unsupported: {
    status: 422,
    title: "The site's hosting platform cannot do this",
    advice: 'unsupported_reason of the backup surface says why.',
  },
  platform_unavailable: {
    status: 422,
    title: 'No host of this platform is configured',
    advice: 'Choose a platform that this installation offers, or ask its operator to configure one.',
    transient: true,
  },
  restore_point_stale: {
    status: 422,
    title: 'The platform no longer lists this restore point',
    advice: 'Read the vendor snapshots of the site again and send a timestamp exactly as it stands there.',
    transient: true,
  },
  scope_not_restorable: {
    status: 422,
    title: 'The platform cannot restore this',
    advice: 'restorable and dead of the item say so; choose another item, or ask support about a broken timeline.',
    transient: true,
  },
  item_required: { status: 422, title: 'A database or mailbox must be named', advice: 'Send the item_id that the listing gives.' },
  item_not_allowed: { status: 422, title: 'The website is restored as a whole', advice: 'Leave item_id out, or empty, for the scope web.' },
  item_not_found: { status: 422, title: 'No such database or mailbox of this site', advice: 'Send an item_id that the listing gives.' },
  temp_mailbox_not_allowed: {
    status: 422,
    title: 'Only a mailbox can be restored beside itself',
    advice: 'Leave temp_mailbox out, or send it with the scope mailbox.',
  },
  snapshot_unavailable: {
    status: 422,
    title: 'The platform takes no snapshot of this now',
    advice: 'can_back_up says whether it would take one; mailboxes are snapshotted by the platform itself and never on demand.',
    transient: true,
  },
  already_restored: {
    status: 422,
    title: 'The site was brought back already',
    advice: 'GET /v1/sites/{site_id} shows it. If its rebuild fails the record can be restored again.',
    transient: true,
  },
  purged: {
    status: 422,
    title: 'The backup is gone',
    advice: 'The retention window has closed or the data was purged; nothing can bring it back.',
  },
  abuse_hold: {
    status: 422,
    title: 'The site was deleted for abuse',
    advice: 'Only staff can bring it back; contact support.',
    transient: true,
  },
  no_backup: {
    status: 422,
    title: 'There is no backup to restore from',
    advice: 'The site held nothing, its platform kept no backup of it, or the backup is not in the storage; ask support.',
    transient: true,
  },
  no_app: {
    status: 422,
    title: 'The site has no application',
    advice: 'Upload an app.js to the root of the site; a site without one has no process to restart.',
    transient: true,
  },
  app_restart_blocked: {
    status: 422,
    title: "The application's restart file cannot be written",
    advice: 'Replace tmp and tmp/restart.txt of the site by an ordinary folder and file: links are not followed.',
    transient: true,
  },
  app_not_started: {
    status: 422,
    title: 'The application did not come back',
    advice:
      "Its process ends before it listens: read what it prints, mend the code and restart it again. Nothing but the application's process was changed.",
    transient: true,
  },
  site_suspended: {
    status: 422,
    title: 'The site is suspended',
    advice: 'A suspended site runs no application. Have the suspension lifted first.',
    transient: true,
  },
  column_not_found: { status: 422, title: 'No such column on this board', advice: "Send a column_id that the board's columns have." },
  label_not_found: { status: 422, title: 'No such label on this board', advice: "Send label_ids that the board's labels have." },
  card_archived: {
    status: 422,
    title: 'The card is in the archive',
    advice: 'Restore the card first; what is archived has no place to be moved to.',
    transient: true,
  },
  board_full: {
    status: 422,
    title: 'The board has as many columns or labels as it may',
    advice: 'A board holds up to 200 columns and 200 labels. Make another board.',
    transient: true,
  },
  // The state of the resource
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
  site_not_ready: {
    status: 422,
    title: 'The site is not in a state for this',
    advice: 'Wait until the status of the site is active or suspended.',
    transient: true,
  },
  domain_in_use: {
    status: 422,
    title: 'The domain is in use',
    advice: 'Choose another domain, or delete the site that has it.',
    transient: true,
  },
  workflow_not_waiting: {
    status: 422,
    title: 'The workflow does not wait for staff',
    advice: 'Only a workflow whose status is needs_attention can be retried or abandoned.',
    transient: true,
  },
  unknown_parent: { status: 422, title: 'No such parent organisation', advice: 'Name your own organisation or one below it.' },
  org_permission_not_held: {
    status: 422,
    title: 'An organisation cannot be allowed more than its parent',
    advice: 'Leave out the permissions listed in errors.',
  },
  // Failures of a workflow, seen on it and never as an answer of their own
  step_failed: {
    status: 500,
    title: 'A step failed',
    advice: 'Nothing was lost: see the steps of the workflow. Try again, or ask support with the request id.',
  },
  abandoned: { status: 500, title: 'Staff abandoned the operation', advice: 'Ask support what state the resource was left in.' },
  start_by_passed: { status: 503, title: 'The work was not taken up in time', advice: 'Nothing was started. Try again.', transient: true },
  backup_tampered: {
    status: 422,
    title: 'The backup failed its verification',
    advice: 'Nothing was changed. Choose another backup; staff have been told.',
  },
  restore_probe_failed: {
    status: 422,
    title: 'The restored site did not answer',
    advice: 'The site was switched back to what it was before. Choose another backup.',
  },
  storage_full: {
    status: 503,
    title: 'Not enough space to stage the restore',
    advice: 'Nothing was changed. Free space or ask support, then try again.',
    transient: true,
  },
  vendor_restore_failed: {
    status: 422,
    title: 'The platform says that its restore failed',
    advice: 'Look at the site before anything else, then try again or choose another restore point.',
  },
  vendor_snapshot_failed: { status: 422, title: 'The platform says that its snapshot failed', advice: 'Nothing was changed. Try again.' },
  vendor_not_accepted: {
    status: 503,
    title: 'The platform did not take the order',
    advice: 'The order was sent once and no job came of it. Read the vendor snapshots, then try again.',
    transient: true,
  },
  ...computeProblems,
  // Ours
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

/** The codes in a form zod can check a closed set against. */
export const problemCodes = Object.keys(problems).filter((code): code is ProblemCode => code in problems);

/** One field that was wrong: `pointer` is a JSON pointer into the body, or `?name` for a query parameter. */
export const problemFieldSchema = z.strictObject({ pointer: z.string(), code: z.string(), detail: z.string() });

/** RFC 9457 with our members; the 422s of some endpoints add members of their own (`workflow_id`, `reason_code`, `dependency`). */
export const problemSchema = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(problemCodes),
    request_id: z.string(),
    errors: z.array(problemFieldSchema).optional(),
  })
  .meta({ id: 'Problem' });
export type ProblemBody = z.infer<typeof problemSchema>;
export type ProblemField = z.infer<typeof problemFieldSchema>;
