import * as backups from '@drydock/contracts/backups';
import * as offsite from '@drydock/contracts/offsite';
import * as siteWorkflows from '@drydock/contracts/site-workflows';
import * as sites from '@drydock/contracts/sites';
import * as vendorSnapshots from '@drydock/contracts/vendor-snapshots';
import { type Route, route } from '@drydock/service-kit/route';
import { listBackups } from './backups/list-backups';
import { preflightRestore } from './backups/preflight-restore';
import { restoreBackup } from './backups/restore-backup';
import { takeBackup } from './backups/take-backup';
import type { HandlerContext } from './context';
import type { Tx } from './database.store';
import { configureOffsite } from './offsite/configure-offsite';
import { copyOffsite } from './offsite/copy-offsite';
import { getOffsite } from './offsite/get-offsite';
import { preflightOffsite } from './offsite/preflight-offsite';
import { removeOffsite } from './offsite/remove-offsite';
import { restoreOffsite } from './offsite/restore-offsite';
import { abandonWorkflow } from './site-workflows/abandon-workflow';
import { getWorkflow } from './site-workflows/get-workflow';
import { listWorkflows } from './site-workflows/list-workflows';
import { retryWorkflow } from './site-workflows/retry-workflow';
import { watchWorkflow } from './site-workflows/watch-workflow';
import { createSite } from './sites/create-site';
import { deleteSite } from './sites/delete-site';
import { getSite } from './sites/get-site';
import { listSites } from './sites/list-sites';
import { getVendorSnapshots } from './vendor-snapshots/get-vendor-snapshots';
import { restoreVendorSnapshot } from './vendor-snapshots/restore-vendor-snapshot';
import { takeVendorSnapshot } from './vendor-snapshots/take-vendor-snapshot';

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(sites.listSites, listSites(context)),
  route(sites.createSite, createSite(context)),
  route(sites.getSite, getSite(context)),
  route(sites.deleteSite, deleteSite(context)),
  route(backups.listSiteBackups, listBackups(context)),
  route(backups.takeSiteBackup, takeBackup(context)),
  route(backups.restoreSiteBackup, restoreBackup(context)),
  route(backups.preflightSiteBackupRestore, preflightRestore(context)),
  route(offsite.getSiteOffsite, getOffsite(context)),
  route(offsite.putSiteOffsite, configureOffsite(context)),
  route(offsite.deleteSiteOffsite, removeOffsite(context)),
  route(offsite.takeSiteOffsiteCopy, copyOffsite(context)),
  route(offsite.restoreSiteOffsite, restoreOffsite(context)),
  route(offsite.preflightSiteOffsiteRestore, preflightOffsite(context)),
  route(siteWorkflows.listSiteWorkflows, listWorkflows(context)),
  route(siteWorkflows.getSiteWorkflow, getWorkflow(context)),
  route(siteWorkflows.watchSiteWorkflow, watchWorkflow(context)),
  route(siteWorkflows.retrySiteWorkflow, retryWorkflow(context)),
  route(siteWorkflows.abandonSiteWorkflow, abandonWorkflow(context)),
  route(vendorSnapshots.getSiteVendorSnapshots, getVendorSnapshots(context)),
  route(vendorSnapshots.takeSiteVendorSnapshot, takeVendorSnapshot(context)),
  route(vendorSnapshots.restoreSiteVendorSnapshot, restoreVendorSnapshot(context)),
];
