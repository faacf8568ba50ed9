import type { SiteView } from '@drydock/contracts/hosting/sites';
import type { Site } from './site.types';

export function viewSite(site: Site): SiteView {
  return {
    id: site.id,
    org_id: site.orgId,
    name: site.name,
    primary_domain: site.primaryDomain,
    platform: site.platform,
    database: site.database,
    status: site.status,
    url: site.url,
    plan: { daily_backups: site.dailyBackups, backup_retention_days: site.backupRetentionDays },
    metadata: site.metadata,
    created_at: site.createdAt.toISOString(),
  };
}
