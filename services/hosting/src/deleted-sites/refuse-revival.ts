import type { DeletedSiteReason } from '@drydock/contracts/deleted-sites';
import type { Refusal } from '@drydock/workflow-kit/refusal.rules';
import type { HandlerContext } from '../context';
import { offersPlatform } from '../sites/offers-platform';
import type { DeletedSite } from './deleted-site.types';

/** What endpoint 6 and its preflight answer: the record's own reason first, then whether there is a host to bring it back to. */
export function refuseRevival(context: HandlerContext, { platform, mode }: DeletedSite, reason: DeletedSiteReason): Refusal | null {
  if (reason !== '') return { code: reason, extra: { reason_code: reason } };
  return offersPlatform(context, platform, mode) ? null : { code: 'platform_unavailable' };
}
