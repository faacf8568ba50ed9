import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { exampleId, idSchema, pageMetaSchema, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';
import { acceptedWork } from '../platform/workflows';
import { restoreQuerySchema } from './backups';
import { siteId } from './sites';

export const offsiteCopyKindSchema = z.enum(['full', 'incremental']);
export type OffsiteCopyKind = z.infer<typeof offsiteCopyKindSchema>;

/** The most copies of a chain, its full copy included. The next incremental copy is taken as a full copy instead. */
export const offsiteChainMax = 100;

export const offsiteCopySchema = z
  .strictObject({
    id: z.string().describe('The copy.'),
    kind: offsiteCopyKindSchema.describe('An incremental one holds what changed since the copy before it.'),
    base_id: z.string().nullable().describe('The full copy that its chain begins with; null for a full one.'),
    depends_on: z.array(z.string()).describe('Every copy that is needed to restore it, the full one first.'),
    created_at: timestampSchema.describe('When it was taken.'),
    size_bytes: z.int().min(0).describe('Bytes in the bucket.'),
    status: z
      .enum(['completed', 'failed', 'incomplete_chain'])
      .describe('One of incomplete_chain lacks a copy that it depends on.'),
    verified_at: timestampSchema.nullable().describe('When every HMAC of it was last compared; null if never.'),
  })
  .meta({ id: 'SiteOffsiteCopy' });
export type OffsiteCopyView = z.infer<typeof offsiteCopySchema>;

export const offsiteRestorePhaseSchema = z.enum([
  'queued',
  'fetching',
  'verifying',
  'staging',
  'switching',
  'done',
  'failed',
]);
export type OffsiteRestorePhase = z.infer<typeof offsiteRestorePhaseSchema>;

export const offsiteRestoreSchema = z
  .strictObject({
    workflow_id: uuidSchema.describe('The workflow that restores it.'),
    copy_id: z.string().describe('The copy that is restored.'),
    phase: offsiteRestorePhaseSchema.describe('What is being done.'),
    progress: z.int().min(0).max(100).describe('Percent that is done.'),
    started_at: timestampSchema.describe('When the call was accepted.'),
    finished_at: timestampSchema.nullable().describe('When it ended; null before.'),
    error_code: z.string().describe('Why it failed, as a code of /problems; empty otherwise.'),
  })
  .meta({ id: 'OffsiteRestore' });

export const offsiteEncryptionScheme = 'aes-256-ctr+hmac-sha256';

export const siteOffsiteSchema = z
  .strictObject({
    configured: z.boolean().describe('Whether a bucket has been named.'),
    destination: z
      .strictObject({
        kind: z.literal('s3').describe('The protocol of the storage.'),
        endpoint: z.string().describe('Origin of the storage, such as https://s3.example.com.'),
        region: z.string().describe("The bucket's region."),
        bucket: z.string().describe("The bucket's name."),
        prefix: z.string().describe('Folders below which the copies are; empty for the whole bucket.'),
      })
      .meta({ id: 'OffsiteDestination' })
      .nullable()
      .describe('The bucket that copies go to; null where none has been named. Its credentials are in no answer.'),
    encryption: z
      .strictObject({
        scheme: z.literal(offsiteEncryptionScheme).describe('The cipher and the authentication.'),
        key_id: z.string().describe('Names the key, without telling it.'),
      })
      .meta({ id: 'OffsiteEncryption' })
      .nullable()
      .describe('How copies are encrypted; null where no bucket has been named.'),
    in_progress: z.boolean().describe('Whether a copy or a restore is running. Poll while it is true.'),
    last_copy_at: timestampSchema.nullable().describe('When a copy last completed; null if never.'),
    last_error_code: z.string().describe('Why the last copy failed, as a code of /problems; empty when it did not.'),
    copies: z.array(offsiteCopySchema).describe('A page of them, newest first.'),
    page: pageMetaSchema.describe('Where the list of copies goes on.'),
    restore: offsiteRestoreSchema.nullable().describe('The newest restore of a copy; null if there was none.'),
  })
  .meta({ id: 'SiteOffsite' });
export type SiteOffsite = z.infer<typeof siteOffsiteSchema>;

export const acceptedSiteOffsiteCopySchema = siteOffsiteSchema
  .extend(acceptedWork)
  .meta({ id: 'AcceptedSiteOffsiteCopy' });

/** The answer to the restore of a copy, in the form of interface.md 2.4. */
export const offsiteRestoreResultSchema = z
  .strictObject({
    workflow_id: uuidSchema.describe('The workflow that restores the copy.'),
    state: siteOffsiteSchema.describe("The site's copies, with this restore."),
  })
  .meta({ id: 'OffsiteRestoreResult' });

const withoutSpaces = (maxLength: number) =>
  z
    .string()
    .regex(
      new RegExp(`^[\\x21-\\x7e]{1,${maxLength}}$`),
      `must be 1 to ${maxLength} characters of ASCII without spaces`,
    );

/**
 * An origin, with http or https, in the form that `URL` gives it. An IPv4 address in octal or as a single number gets
 * the form of four decimal numbers, by which later checks recognise an internal address.
 */
const endpointSchema = withoutSpaces(300).transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isOrigin =
    url !== null &&
    url.username === '' &&
    url.password === '' &&
    url.pathname === '/' &&
    url.search === '' &&
    url.hash === '';
  if (isOrigin && (url.protocol === 'https:' || url.protocol === 'http:') && !text.includes('#') && !text.includes('?'))
    return url.origin;
  context.addIssue({ code: 'custom', message: 'must be https://host or https://host:port' });
  return z.NEVER;
});

/** The destination of copies. No answer contains its secrets. */
const destinationBody = z.strictObject({
  endpoint: endpointSchema.describe('https://host or https://host:port of an S3 storage, up to 300 characters.'),
  region: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be a region, such as eu-central-1')
    .describe("The bucket's region, such as eu-central-1."),
  bucket: z
    .string()
    .regex(
      /^[a-z0-9](?:[a-z0-9-]|\.(?!\.)){1,61}[a-z0-9]$/,
      "must be a bucket's name: 3 to 63 small letters, digits, hyphens or dots",
    )
    .describe("The bucket's name; the bucket must be there."),
  prefix: z
    .string()
    .max(200)
    .regex(
      /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\/?)?$/,
      'must be folders of letters, digits, dots, underscores and hyphens, such as sites/shop',
    )
    .transform((prefix) => prefix.replace(/\/$/, ''))
    .default('')
    .describe('Folders below which the copies go, such as sites/shop. Left out: the whole bucket.'),
  access_key_id: withoutSpaces(256).describe('Of an account that may list, read, write and delete below the prefix.'),
  secret_access_key: withoutSpaces(512).describe('Of the same account. It is stored encrypted and is in no answer.'),
});

/**
 * `copy_id` may be any text of up to 255 characters. A text that is no id gets the same answer as the id of a copy that
 * does not exist.
 */
const restoreBody = z.strictObject({
  copy_id: z.string().min(1).max(255).describe('A copy of this site, of status completed.'),
});
const stateProblems = ['operation_in_progress', 'needs_attention', 'platform_unsupported', 'site_not_ready'] as const;
const restoreProblems = [
  'offsite_not_configured',
  'copy_not_found',
  'copy_chain_incomplete',
  'copy_tampered',
  'offsite_credentials_rejected',
  'offsite_endpoint_refused',
  'offsite_bucket_unusable',
  ...stateProblems,
] as const;
const tags = ['Offsite copies'] as const;

export const getSiteOffsite = endpoint({
  id: 'getSiteOffsite',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/offsite',
  summary: "The site's copies in the customer's own storage; poll it while in_progress is true",
  permissions: ['sites.view'],
  params: { siteId },
  query: pageQuerySchema,
  response: { status: 200, schema: siteOffsiteSchema },
  problems: [],
  tags,
});

export const putSiteOffsite = endpoint({
  id: 'putSiteOffsite',
  service: 'hosting',
  method: 'PUT',
  path: '/v1/sites/{siteId}/offsite',
  summary: 'Name the bucket that copies go to; an object is written, read and deleted there before the answer',
  about: 'Copies in a bucket that was named before stay there.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: destinationBody,
  example: {
    endpoint: 'https://s3.eu-central-1.example.com',
    region: 'eu-central-1',
    bucket: 'shop-copies',
    prefix: 'sites/shop',
    access_key_id: 'AKIAEXAMPLE',
    secret_access_key: 'a-secret-of-the-storage',
  },
  response: { status: 200, schema: siteOffsiteSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'offsite_endpoint_refused',
    'offsite_credentials_rejected',
    'offsite_bucket_unusable',
  ],
  tags,
});

export const deleteSiteOffsite = endpoint({
  id: 'deleteSiteOffsite',
  service: 'hosting',
  method: 'DELETE',
  path: '/v1/sites/{siteId}/offsite',
  summary: 'Forget the bucket and its credentials; the copies in it stay, and are known again when it is named again',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  response: { status: 204 },
  problems: ['operation_in_progress', 'needs_attention'],
  tags,
});

export const getSiteOffsiteCopy = endpoint({
  id: 'getSiteOffsiteCopy',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/offsite/copies/{copyId}',
  summary: 'One copy at the bucket that the site has now; GET /v1/sites/{siteId}/offsite lists them',
  permissions: ['sites.view'],
  params: { siteId, copyId: { schema: idSchema.describe('The copy.'), notFound: 'site_offsite_copy_not_found' } },
  response: { status: 200, schema: offsiteCopySchema },
  problems: [],
  tags,
});

export const takeSiteOffsiteCopy = endpoint({
  id: 'takeSiteOffsiteCopy',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/offsite/copies',
  summary: "Copy the site into the customer's own storage: all of it, or what changed since the last copy",
  about:
    'The site goes on serving, and its database takes writes. ' +
    'An incremental copy needs every copy before it, down to the last full one. ' +
    `A chain ends at ${offsiteChainMax} copies: the next incremental copy is taken as a full one, ` +
    'which begins a new chain; the list shows its kind.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({ kind: offsiteCopyKindSchema.describe('incremental needs a full copy before it.') }),
  example: { kind: 'full' },
  response: { status: 202, schema: acceptedSiteOffsiteCopySchema },
  problems: ['offsite_not_configured', 'copy_chain_incomplete', ...stateProblems],
  tags,
});

/** Endpoint 5 of interface.md. */
export const restoreSiteOffsite = endpoint({
  id: 'restoreSiteOffsite',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/offsite/restore',
  summary: "Overwrite the site's live files and database with the named copy and every copy that it depends on",
  about:
    'Every object of the chain is fetched and verified before anything is overwritten. ' +
    'From there on it goes as the restore of a backup does: ' +
    'what is overwritten becomes a backup of kind `pre_restore`. ' +
    'With `contents=files` the files alone are overwritten.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  query: restoreQuerySchema,
  body: restoreBody,
  example: { copy_id: exampleId },
  response: { status: 202, schema: offsiteRestoreResultSchema },
  hasClosedStatuses: true,
  problems: restoreProblems,
  quota: 'exempt',
  tags,
});

export const preflightSiteOffsiteRestore = endpoint({
  id: 'preflightSiteOffsiteRestore',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/offsite/restore/preflight',
  summary: 'What a restore would overwrite, and the refusal it would give; changes nothing',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  query: restoreQuerySchema,
  body: restoreBody,
  example: { copy_id: exampleId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
