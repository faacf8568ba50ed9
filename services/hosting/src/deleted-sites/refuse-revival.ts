import type { DeletedSiteReason } from '@drydock/contracts/hosting/deleted-sites';
import { type Refusal, refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import type { Reader } from '../database.store';
import { offersPlatform } from '../sites/offers-platform';
import { siteResourceKey } from '../sites/site-names';
import type { DeletedSite } from './deleted-site.types';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';
import { isLetGo } from './revived-site.store';

/**
 * The refusal of a restore of a deleted site, and of its preflight. The first reason counts, in this order: a restore
 * that is rebuilding the site, the reason of the record, and no host with the programs of the site's database. The row
 * of the site says whether it is still being rebuilt. A site that is shown as active counts as restored, even while its
 * restore still cleans up. Other work on the site is no reason, because the record already says that the site was
 * restored.
 */
export async function refuseRevival(
  context: HandlerContext,
  tx: Reader,
  { platform, mode, siteId }: DeletedSite,
  { reason, isDatabaseOffered }: { reason: DeletedSiteReason; isDatabaseOffered: boolean },
): Promise<Refusal | null> {
  const unfinished = await findUnfinished(context.database.sql(tx), siteResourceKey(siteId));
  const isRebuilding = unfinished?.kind === restoreDeletedSiteWorkflow.kind && !(await isLetGo(tx, siteId));
  if (isRebuilding) return refusalByWorkflow(unfinished);
  if (reason !== '') return { code: reason, extra: { reason_code: reason } };
  if (!offersPlatform(context, platform, mode)) return { code: 'platform_unavailable' };
  return isDatabaseOffered ? null : { code: 'site_database_not_offered' };
}
