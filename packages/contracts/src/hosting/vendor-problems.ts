import { define } from '../platform/problem-definition';

/** Codes about snapshots at a vendor. */
export const vendorProblems = define({
  no_vendor_package: {
    status: 404,
    title: 'The site has no hosting package at a vendor',
    advice: 'Only a site of platform vendor has one; restore any other site from its backups.',
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
  item_required: {
    status: 422,
    title: 'A database or mailbox must be named',
    advice: 'Send the item_id that the listing gives.',
  },
  item_not_allowed: {
    status: 422,
    title: 'The website is restored as a whole',
    advice: 'Leave item_id out, or empty, for the scope web.',
  },
  item_not_found: {
    status: 422,
    title: 'No such database or mailbox of this site',
    advice: 'Send an item_id that the listing gives.',
  },
  temp_mailbox_not_allowed: {
    status: 422,
    title: 'Only a mailbox can be restored beside itself',
    advice: 'Leave temp_mailbox out, or send it with the scope mailbox.',
  },
  snapshot_unavailable: {
    status: 422,
    title: 'The platform takes no snapshot of this now',
    advice:
      'can_back_up says whether it would take one; mailboxes are snapshotted by the platform itself and never on demand.',
    transient: true,
  },
  vendor_restore_failed: {
    status: 422,
    title: 'The platform says that its restore failed',
    advice: 'Look at the site before anything else, then try again or choose another restore point.',
  },
  vendor_snapshot_failed: {
    status: 422,
    title: 'The platform says that its snapshot failed',
    advice: 'Nothing was changed. Try again.',
  },
  vendor_not_accepted: {
    status: 503,
    title: 'The platform did not take the order',
    advice: 'The order was sent once and no job came of it. Read the vendor snapshots, then try again.',
    transient: true,
  },
});
