import * as backups from '@drydock/contracts/hosting/backups';
import * as deletedSites from '@drydock/contracts/hosting/deleted-sites';
import * as offsite from '@drydock/contracts/hosting/offsite';
import * as siteApp from '@drydock/contracts/hosting/site-app';
import * as siteDomain from '@drydock/contracts/hosting/site-domain';
import * as sites from '@drydock/contracts/hosting/sites';
import * as vendorSnapshots from '@drydock/contracts/hosting/vendor-snapshots';
import { siteQuota } from '@drydock/contracts/platform/quotas';
import { getQuota, type Route, route, setQuota } from '@drydock/service/http';
import { abandonWorkflow, getWorkflow, listWorkflows, retryWorkflow, watchWorkflow } from '@drydock/workflow/http';
import { getApp, preflightRestart, restartApp } from './app/restart-app';
import { getBackup, listBackupSkipped, listBackups } from './backups/backup-surface';
import { preflightRestore, restoreBackup } from './backups/restore-backup';
import { takeBackup } from './backups/take-backup';
import type { HandlerContext } from './context/context';
import type { Tx } from './context/database.store';
import { deleteSite, preflightDeletion } from './deleted-sites/delete-site';
import { deletedSiteParent, getDeletedSite, listDeletedSites } from './deleted-sites/deleted-site-record';
import { preflightDeletedSite, restoreDeletedSite } from './deleted-sites/restore-deleted-site';
import { configureOffsite, removeOffsite } from './offsite/configure-offsite';
import { copyOffsite } from './offsite/copy-offsite';
import { getOffsite, getOffsiteCopy } from './offsite/offsite-state';
import { preflightOffsite, restoreOffsite } from './offsite/restore-offsite';
import { createSite } from './sites/create-site';
import { getSiteDomain, proveSiteDomain } from './sites/prove-site-domain';
import { getSite, listSites, siteParent, updateSite } from './sites/site-record';
import { getSiteStorage } from './sites/storage';
import { getVendorSnapshots } from './vendor-snapshots/read-timelines';
import {
  preflightVendorRestore,
  restoreVendorSnapshot,
  takeVendorSnapshot,
} from './vendor-snapshots/request-vendor-work';

const { siteWorkflows } = sites;
const { deletedSiteWorkflows } = deletedSites;

export const routes = (context: HandlerContext): Route<Tx>[] => [
  route(sites.listSites, listSites(context)),
  route(sites.createSite, createSite(context)),
  route(siteQuota.get, getQuota(context)),
  route(siteQuota.set, setQuota(context, siteQuota.get.path)),
  route(sites.getSite, getSite(context)),
  route(sites.updateSite, updateSite(context)),
  route(sites.getSiteStorage, getSiteStorage(context)),
  route(sites.deleteSite, deleteSite(context)),
  route(sites.preflightSiteDeletion, preflightDeletion(context)),
  route(backups.listSiteBackups, listBackups(context)),
  route(backups.getSiteBackup, getBackup(context)),
  route(backups.listSiteBackupSkipped, listBackupSkipped(context)),
  route(backups.takeSiteBackup, takeBackup(context)),
  route(backups.restoreSiteBackup, restoreBackup(context)),
  route(backups.preflightSiteBackupRestore, preflightRestore(context)),
  route(offsite.getSiteOffsite, getOffsite(context)),
  route(offsite.putSiteOffsite, configureOffsite(context)),
  route(offsite.deleteSiteOffsite, removeOffsite(context)),
  route(offsite.getSiteOffsiteCopy, getOffsiteCopy(context)),
  route(offsite.takeSiteOffsiteCopy, copyOffsite(context)),
  route(offsite.restoreSiteOffsite, restoreOffsite(context)),
  route(offsite.preflightSiteOffsiteRestore, preflightOffsite(context)),
  route(siteApp.getSiteApp, getApp(context)),
  route(siteApp.restartSiteApp, restartApp(context)),
  route(siteApp.preflightSiteAppRestart, preflightRestart(context)),
  route(siteDomain.getSiteDomain, getSiteDomain(context)),
  route(siteDomain.proveSiteDomain, proveSiteDomain(context)),
  route(siteWorkflows.list, listWorkflows(siteParent(context), siteWorkflows.list)),
  route(siteWorkflows.get, getWorkflow(siteParent(context))),
  route(siteWorkflows.watch, watchWorkflow(siteParent(context))),
  route(siteWorkflows.retry, retryWorkflow(siteParent(context))),
  route(siteWorkflows.abandon, abandonWorkflow(siteParent(context))),
  route(deletedSites.listDeletedSites, listDeletedSites(context)),
  route(deletedSites.getDeletedSite, getDeletedSite(context)),
  route(deletedSites.restoreDeletedSite, restoreDeletedSite(context)),
  route(deletedSites.preflightDeletedSiteRestore, preflightDeletedSite(context)),
  route(deletedSiteWorkflows.list, listWorkflows(deletedSiteParent(context), deletedSiteWorkflows.list)),
  route(deletedSiteWorkflows.get, getWorkflow(deletedSiteParent(context))),
  route(deletedSiteWorkflows.watch, watchWorkflow(deletedSiteParent(context))),
  route(deletedSiteWorkflows.retry, retryWorkflow(deletedSiteParent(context))),
  route(deletedSiteWorkflows.abandon, abandonWorkflow(deletedSiteParent(context))),
  route(vendorSnapshots.getSiteVendorSnapshots, getVendorSnapshots(context)),
  route(vendorSnapshots.takeSiteVendorSnapshot, takeVendorSnapshot(context)),
  route(vendorSnapshots.restoreSiteVendorSnapshot, restoreVendorSnapshot(context)),
  route(vendorSnapshots.preflightSiteVendorRestore, preflightVendorRestore(context)),
];
