import * as agencyBoards from './agency/agency-boards';
import * as agencyCards from './agency/agency-cards';
import * as computeServers from './compute/compute-servers';
import * as computeSnapshots from './compute/compute-snapshots';
import * as databaseBackups from './databases/database-backups';
import * as databaseUpgrades from './databases/database-upgrades';
import * as databases from './databases/databases';
import * as backups from './hosting/backups';
import * as deletedSites from './hosting/deleted-sites';
import * as offsite from './hosting/offsite';
import * as siteApp from './hosting/site-app';
import * as siteDomain from './hosting/site-domain';
import * as sites from './hosting/sites';
import * as vendorSnapshots from './hosting/vendor-snapshots';
import * as apiKeys from './keys/api-keys';
import * as events from './keys/events';
import * as orgs from './keys/orgs';
import * as webhooks from './keys/webhooks';
import type { EndpointDefinition } from './platform/endpoint';
import { databaseQuota, serverQuota, siteQuota } from './platform/quotas';

/** Whether an exported value is an endpoint. The files also export schemas and groups of endpoints. */
const isEndpoint = (value: unknown): value is EndpointDefinition =>
  typeof value === 'object' &&
  value !== null &&
  'path' in value &&
  'method' in value &&
  'service' in value &&
  'permissions' in value;

/**
 * Every endpoint behind the gateway. The gateway routes with this list, and tests prove that each endpoint is mounted
 * exactly once. OpenAPI has the endpoints in this order.
 */
export const endpoints: readonly EndpointDefinition[] = [
  agencyBoards,
  agencyCards,
  apiKeys,
  orgs,
  events,
  webhooks,
  sites,
  backups,
  offsite,
  siteApp,
  siteDomain,
  sites.siteWorkflows,
  vendorSnapshots,
  deletedSites,
  deletedSites.deletedSiteWorkflows,
  computeServers,
  computeSnapshots,
  computeServers.serverWorkflows,
  databases,
  databaseBackups,
  databaseUpgrades,
  databases.databaseWorkflows,
  siteQuota,
  databaseQuota,
  serverQuota,
].flatMap((group) => Object.values(group).filter(isEndpoint));
