/** Codes about sites, their backups and copies, and their applications. */
export const siteProblems = {
  site_not_found: { status: 404, title: 'No such site', advice: 'GET /v1/sites lists your sites.' },
  site_offsite_copy_not_found: {
    status: 404,
    title: 'No such copy of this site',
    advice: 'GET /v1/sites/{siteId}/offsite lists them.',
  },
  site_backup_not_found: {
    status: 404,
    title: 'No such backup of this site',
    advice: 'GET /v1/sites/{siteId}/backups lists them.',
  },
  deleted_site_not_found: { status: 404, title: 'No such deleted site', advice: 'GET /v1/sites/deleted lists them.' },
  on_demand_limit_reached: {
    status: 429,
    title: 'The allowance of on-demand backups is spent',
    advice:
      'Wait as long as Retry-After says; the oldest counted backup leaves the rolling 24 hours then. ' +
      'Of a site, on_demand_next_at of the backup surface is that time.',
    transient: true,
  },
  backup_not_found: {
    status: 422,
    title: 'No such backup of this site or database',
    advice:
      'Name a backup from its own list; a new database may be made from a backup of any database of the organisation.',
  },
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
    advice:
      'Name an https endpoint on the public internet whose name leads to public addresses only and whose ' +
      'certificate can be verified; redirects are not followed.',
    transient: true,
  },
  offsite_credentials_rejected: {
    status: 422,
    title: 'Your storage rejected the credentials',
    advice:
      'Send valid ones with PUT /v1/sites/{siteId}/offsite; they must be allowed to read, ' +
      'write and delete below the prefix.',
    transient: true,
  },
  offsite_bucket_unusable: {
    status: 422,
    title: 'The bucket cannot be used',
    advice: 'See that it exists in the region that you named and takes objects, then try again.',
    transient: true,
  },
  copy_not_found: {
    status: 422,
    title: 'No such copy of this site',
    advice: 'Name a copy that GET /v1/sites/{siteId}/offsite lists.',
  },
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
  copy_missing: {
    status: 422,
    title: 'Part of the copy is missing',
    advice: 'Nothing was changed. Put the missing objects back into your storage, or name a copy of another chain.',
    transient: true,
  },
  copy_too_large: {
    status: 422,
    title: 'The copy holds more than can be restored',
    advice:
      'Nothing was changed, and the copy is what was written. detail names the limit. ' +
      'Name another copy or take a full one, or ask support.',
  },
  copy_format_newer: {
    status: 422,
    title: 'The copy was written by a newer version of Drydock',
    advice:
      'Nothing was changed. It can be restored once this installation is as new; ' +
      'name another copy until then, or ask support.',
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
  site_database_not_offered: {
    status: 422,
    title: 'A site cannot have this database here',
    advice:
      'Leave database out on the platforms ssh and vendor: such a site has what they give it. ' +
      'On platform local ask for postgres, or have the ' +
      "operator put MariaDB's programs on the site host's machine: npm run engines -- mariadb@11.8.",
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
    advice:
      'The site held nothing, its platform kept no backup of it, or the backup is not in the storage; ask support.',
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
  sandbox_unavailable: {
    status: 422,
    title: 'Applications are not run on this machine',
    advice:
      'Nothing would keep them apart there, so none is started; files and pages are served. ' +
      'Whoever runs the machine has to allow user namespaces.',
    transient: true,
  },
  app_not_started: {
    status: 422,
    title: 'The application did not come back',
    advice:
      'Its process ends before it listens: read what it prints, mend the code and restart it again. ' +
      "Nothing but the application's process was changed.",
    transient: true,
  },
  site_suspended: {
    status: 422,
    title: 'The site is suspended',
    advice:
      'A suspended site runs no application. Have the suspension lifted first; one that came back from its ' +
      'deletion is active by itself, minutes after its front page answers without a server error.',
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
    advice:
      'Choose another domain, or delete the site that has it. If the domain is yours, prove it: its owner has it.',
    transient: true,
  },
  domain_not_proven: {
    status: 422,
    title: 'The domain is not proven',
    advice:
      'Set the TXT record or put up the file that is named by GET /v1/sites/{siteId}/domain and, ' +
      'where a site is refused for it, by this answer; then send the request again.',
    transient: true,
  },
  backup_tampered: {
    status: 422,
    title: 'The backup failed its verification',
    advice: 'Nothing was changed. Choose another backup; staff have been told.',
  },
  backup_missing: {
    status: 422,
    title: 'All or part of the backup is missing',
    advice: 'Nothing was changed. Choose another backup; staff have been told.',
  },
  backup_too_large: {
    status: 422,
    title: 'The backup holds more than can be restored',
    advice:
      'Nothing was changed, and the backup is what was written. detail names the limit. ' +
      'Choose another backup; staff have been told.',
  },
  backup_format_newer: {
    status: 422,
    title: 'The backup was written by a newer version of Drydock',
    advice:
      'Nothing was changed. It can be restored once this installation is as new. ' +
      'Choose another backup until then; staff have been told.',
    transient: true,
  },
  site_content_refused: {
    status: 422,
    title: 'Something in the site cannot be packed',
    advice:
      'Nothing was changed. detail names the object and the reason: change or drop it, then try again. ' +
      'A site that shall go needs no backup: DELETE /v1/sites/{siteId}?last_backup=none.',
    transient: true,
  },
  backup_content_refused: {
    status: 422,
    title: 'Something in the backup or copy cannot be loaded',
    advice:
      'Nothing was changed, and the archive is what was written. detail or findings name the object and the ' +
      'reason: choose another backup or copy, restore the files of a site alone with contents=files, ' +
      'make a new database of the major that the backup was taken from, or ask support.',
  },
  restore_probe_failed: {
    status: 422,
    title: 'The restored site did not answer',
    advice:
      'The site was switched back to what it was before. ' +
      'What answered worse than when the backup was taken may need something outside of it, ' +
      'such as a service that the site calls: see to that and restore again, or choose another backup.',
  },
  storage_full: {
    status: 503,
    title: 'Not enough space to stage the restore',
    advice: 'Nothing was changed. Free space or ask support, then try again.',
    transient: true,
  },
} as const;

/** Codes about snapshots at a vendor. */
export const vendorProblems = {
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
      'can_back_up says whether it would take one; ' +
      'mailboxes are snapshotted by the platform itself and never on demand.',
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
} as const;
