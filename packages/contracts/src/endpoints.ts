import * as agencyBoards from './agency-boards';
import * as agencyCards from './agency-cards';
import * as apiKeys from './api-keys';
import * as auditLog from './audit-log';
import * as backups from './backups';
import * as computeServers from './compute-servers';
import * as computeSnapshots from './compute-snapshots';
import * as computeWorkflows from './compute-workflows';
import * as databaseBackups from './database-backups';
import * as databaseUpgrades from './database-upgrades';
import * as databaseWorkflows from './database-workflows';
import * as databases from './databases';
import * as deletedSites from './deleted-sites';
import type { EndpointDefinition } from './endpoint';
import * as offsite from './offsite';
import * as orgs from './orgs';
import * as quotas from './quotas';
import * as siteApp from './site-app';
import * as siteDomain from './site-domain';
import * as siteWorkflows from './site-workflows';
import * as sites from './sites';
import * as vendorSnapshots from './vendor-snapshots';

/** An endpoint among the schemas of a domain's file. */
const isEndpoint = (value: unknown): value is EndpointDefinition =>
  typeof value === 'object' && value !== null && 'path' in value && 'method' in value && 'service' in value && 'permissions' in value;

/** Every endpoint behind the gateway. The gateway routes by it, OpenAPI is made of it, tests prove that each is mounted once. */
export const endpoints: readonly EndpointDefinition[] = [
  agencyBoards,
  agencyCards,
  apiKeys,
  orgs,
  auditLog,
  sites,
  backups,
  offsite,
  siteApp,
  siteDomain,
  siteWorkflows,
  vendorSnapshots,
  deletedSites,
  computeServers,
  computeSnapshots,
  computeWorkflows,
  databases,
  databaseBackups,
  databaseUpgrades,
  databaseWorkflows,
  quotas,
].flatMap((domain) => Object.values(domain).filter(isEndpoint));
