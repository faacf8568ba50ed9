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
 * What endpoint 6 and its preflight answer: its own restore first while it rebuilds the site, then the record's own reason, then whether there is a host to
 * bring it back to, with the programs of its database. The row of the site says whether it is rebuilt, as it says so to whoever reads the site: one that is shown as active was restored, also
 * while its restore still tidies up. Another work on the site is none of its business: it was brought back.
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
