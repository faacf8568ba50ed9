import type { ProblemCode } from '@drydock/contracts/problems';
import { retentionDaysMax, type SitePlatform, type SiteStatus } from '@drydock/contracts/sites';
import type { UnfinishedWorkflow } from '../site-workflows/unfinished.types';

/** Why something may not be done now. Asked by the handler for a good answer and by the first step because the world may have moved. */
export interface Refusal {
  code: ProblemCode;
  extra?: Record<string, unknown>;
  retryAfterSeconds?: number;
}

/** What comes before every other state of the site: somebody is at work on it, or staff have to look. */
export function refusalByWorkflow(unfinished: UnfinishedWorkflow | null): Refusal | null {
  if (unfinished === null) return null;
  const code = unfinished.status === 'needs_attention' ? 'needs_attention' : 'operation_in_progress';
  return { code, extra: { workflow_id: unfinished.id } };
}

const readyStatuses: readonly SiteStatus[] = ['active', 'suspended'];

/** A site whose files and database can be read and overwritten. */
export const isReady = (status: SiteStatus): boolean => readyStatuses.includes(status);

/** Why the hosting platform cannot be backed up at all; '' when it can. */
export function unsupportedReasonOf(platform: SitePlatform): '' | 'platform_no_backup' {
  return platform === 'vendor' ? 'platform_no_backup' : '';
}

/** The plan's entitlement, clamped to the platform's maximum (interface.md 8.2). */
export const retentionDaysOf = (site: { backupRetentionDays: number }): number => Math.min(site.backupRetentionDays, retentionDaysMax);
