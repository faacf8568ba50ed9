import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { timestampSchema } from '../platform/values';
import { siteId } from './sites';

export const vendorScopeSchema = z.enum(['web', 'database', 'mailbox']);
export type VendorScope = z.infer<typeof vendorScopeSchema>;

/** One timeline: the website's, a database's or a mailbox's. */
export const siteVendorSnapshotItemSchema = z
  .strictObject({
    /** '' for the website. */
    item_id: z.string(),
    name: z.string(),
    /** The platform reports this timeline as broken. */
    dead: z.boolean(),
    restorable: z.boolean(),
    in_progress: z.boolean(),
    /** Newest first. `timestamp` is an opaque handle: send it back exactly as it stands here. */
    points: z.array(z.strictObject({ timestamp: z.string(), taken_at: timestampSchema, kind: z.enum(['automatic', 'manual']) })),
  })
  .meta({ id: 'SiteVendorSnapshotItem' });
export type SiteVendorSnapshotItem = z.infer<typeof siteVendorSnapshotItemSchema>;

/** interface.md 2.3 */
export const vendorSnapshotSurfaceSchema = z
  .strictObject({
    available: z.boolean(),
    permitted: z.boolean(),
    pro: z.boolean(),
    attached: z.boolean(),
    can_back_up: z.boolean(),
    has_dead_web: z.boolean(),
    in_progress: z.boolean(),
    web: siteVendorSnapshotItemSchema.nullable(),
    databases: z.array(siteVendorSnapshotItemSchema),
    mailboxes: z.array(siteVendorSnapshotItemSchema),
  })
  .meta({ id: 'VendorSnapshotSurface' });
export type VendorSnapshotSurface = z.infer<typeof vendorSnapshotSurfaceSchema>;

/** As long as the longest name that a platform is known to give; '' is the website. */
const itemIdSchema = z.string().max(255);
const path = '/v1/sites/{siteId}/vendor-snapshots';
const tags = ['Vendor snapshots'] as const;

export const getSiteVendorSnapshots = endpoint({
  id: 'getSiteVendorSnapshots',
  service: 'hosting',
  method: 'GET',
  path,
  summary: "The timelines that the site's hosting platform keeps; poll it while in_progress is true",
  permissions: ['sites.view'],
  params: { siteId },
  response: { status: 200, schema: vendorSnapshotSurfaceSchema },
  problems: ['no_vendor_package'],
  tags,
});

export const takeSiteVendorSnapshot = endpoint({
  id: 'takeSiteVendorSnapshot',
  service: 'hosting',
  method: 'POST',
  path,
  summary: 'Have the platform take a snapshot of the website or of one database now',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({ scope: vendorScopeSchema, item_id: itemIdSchema.optional() }),
  example: { scope: 'web' },
  response: { status: 202, schema: vendorSnapshotSurfaceSchema },
  problems: [
    'no_vendor_package',
    'snapshot_unavailable',
    'item_required',
    'item_not_allowed',
    'item_not_found',
    'operation_in_progress',
    'needs_attention',
  ],
  tags,
});

/** Endpoint 4: destructive. */
export const restoreSiteVendorSnapshot = endpoint({
  id: 'restoreSiteVendorSnapshot',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore`,
  summary: 'Roll the website, one database or one mailbox back to a named restore point of the platform',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({
    scope: vendorScopeSchema,
    timestamp: z.string().min(1).max(255),
    item_id: itemIdSchema.optional(),
    temp_mailbox: z.boolean().optional(),
  }),
  example: { scope: 'database', timestamp: '20261121T031500Z-4711', item_id: 'shop_db' },
  response: { status: 202, schema: vendorSnapshotSurfaceSchema },
  problems: [
    'no_vendor_package',
    'restore_point_stale',
    'scope_not_restorable',
    'item_required',
    'item_not_allowed',
    'temp_mailbox_not_allowed',
    'operation_in_progress',
    'needs_attention',
  ],
  tags,
});
