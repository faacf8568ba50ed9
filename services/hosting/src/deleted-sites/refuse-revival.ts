import type { DeletedSiteReason } from '@drydock/contracts/hosting/deleted-sites';
import { type Refusal, refusalByWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import type { Reader } from '../database.store';
import { offersPlatform } from '../sites/offers-platform';
import { siteResourceKey } from '../sites/site-names';
import type { DeletedSite } from './deleted-site.types';
import { restoreDeletedSiteWorkflow } from './restore-deleted-site.workflow';

/**
 * What endpoint 6 and its preflight answer: its own restore first while it runs, then the record's own reason, then whether there is a host to bring it back
 * to. Another work on the site is none of its business: it was brought back.
 */
export async function refuseRevival(
  context: HandlerContext,
  tx: Reader,
  { platform, mode, siteId }: DeletedSite,
  reason: DeletedSiteReason,
): Promise<Refusal | null> {
  const unfinished = await findUnfinished(context.database.sql(tx), siteResourceKey(siteId));
  const isAtWork = unfinished?.kind === restoreDeletedSiteWorkflow.kind ? refusalByWorkflow(unfinished) : null;
  if (isAtWork !== null) return isAtWork;
  if (reason !== '') return { code: reason, extra: { reason_code: reason } };
  return offersPlatform(context, platform, mode) ? null : { code: 'platform_unavailable' };
}
