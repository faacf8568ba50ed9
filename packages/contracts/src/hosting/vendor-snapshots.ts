import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { timestampSchema } from '../platform/values';
import { siteId } from './sites';

export const vendorScopeSchema = z.enum(['web', 'database', 'mailbox']);
export type VendorScope = z.infer<typeof vendorScopeSchema>;

/** One timeline: that of the website, of a database or of a mailbox. */
export const siteVendorSnapshotItemSchema = z
  .strictObject({
    item_id: z.string().describe('The database or the mailbox; empty for the website.'),
    name: z.string().describe('As the platform calls it.'),
    dead: z.boolean().describe('Whether the platform reports this timeline as broken.'),
    restorable: z.boolean().describe('Whether a restore of it would be accepted now.'),
    in_progress: z.boolean().describe('Whether a snapshot or a restore of it is running.'),
    points: z
      .array(
        z
          .strictObject({
            timestamp: z.string().describe('Opaque handle of the point. Send it back exactly as it stands here.'),
            taken_at: timestampSchema.describe('The moment whose state it holds.'),
            kind: z.enum(['automatic', 'manual']).describe('Who asked for it.'),
          })
          .meta({ id: 'VendorSnapshotPoint' }),
      )
      .describe('Newest first.'),
  })
  .meta({ id: 'SiteVendorSnapshotItem' });
export type SiteVendorSnapshotItem = z.infer<typeof siteVendorSnapshotItemSchema>;

/** The snapshots at a vendor, in the form of interface.md 2.3. */
export const vendorSnapshotSurfaceSchema = z
  .strictObject({
    available: z.boolean().describe("Whether the site's platform keeps timelines at all."),
    permitted: z.boolean().describe('Whether the package includes them. An upgrade of the package answers a false.'),
    pro: z.boolean().describe('Whether the package has the paid tier.'),
    attached: z.boolean().describe('Whether a storage for timelines is attached to the package.'),
    can_back_up: z.boolean().describe('Whether a snapshot would be accepted now.'),
    has_dead_web: z.boolean().describe("Whether the platform reports the website's timeline as broken."),
    in_progress: z.boolean().describe('Whether a snapshot or a restore is running. Poll while it is true.'),
    web: siteVendorSnapshotItemSchema.nullable().describe("The website's timeline; null when the platform holds none."),
    databases: z.array(siteVendorSnapshotItemSchema).describe('The timeline of each database.'),
    mailboxes: z.array(siteVendorSnapshotItemSchema).describe('The timeline of each mailbox.'),
  })
  .meta({ id: 'VendorSnapshotSurface' });
export type VendorSnapshotSurface = z.infer<typeof vendorSnapshotSurfaceSchema>;

/** The id of a timeline; '' stands for the website. No known platform has ids of more than 255 characters. */
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
  about: 'The platform takes it, and decides how long it is kept.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: z.strictObject({
    scope: vendorScopeSchema.describe('web is the website. A mailbox cannot be snapshotted on demand.'),
    item_id: itemIdSchema.optional().describe('The database. Left out for the website.'),
  }),
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

const restoreBody = z.strictObject({
  scope: vendorScopeSchema.describe('What is rolled back.'),
  timestamp: z.string().min(1).max(255).describe('A point of the timeline, exactly as its list has it.'),
  item_id: itemIdSchema.optional().describe('The database or the mailbox. Left out for the website.'),
  temp_mailbox: z.boolean().optional().describe('Restores a mailbox beside the live one. Only with scope mailbox.'),
});

/** Endpoint 4 of interface.md. */
export const restoreSiteVendorSnapshot = endpoint({
  id: 'restoreSiteVendorSnapshot',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore`,
  summary: 'Roll the website, one database or one mailbox back to a named restore point of the platform',
  about:
    'The platform overwrites the scope in place, and Drydock keeps no copy of what is overwritten: ' +
    'a vendor snapshot taken before does. A mailbox ' +
    'may come back beside the live one instead, which loses nothing.',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: restoreBody,
  example: { scope: 'database', timestamp: '20261121T031500Z-4711', item_id: 'shop_db' },
  response: { status: 202, schema: vendorSnapshotSurfaceSchema },
  hasClosedStatuses: true,
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

export const preflightSiteVendorRestore = endpoint({
  id: 'preflightSiteVendorRestore',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore/preflight`,
  summary: 'What a restore would overwrite, and the refusal it would give; changes nothing',
  permissions: ['hosting.backup.manage'],
  params: { siteId },
  body: restoreBody,
  example: { scope: 'database', timestamp: '20261121T031500Z-4711', item_id: 'shop_db' },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
