import type { UnfinishedWorkflow } from '@drydock/workflow/unfinished.types';
import { type Refusal, refusalByWorkflow } from '@drydock/workflow-kit/refusal.rules';
import { isReady } from '../sites/site.rules';
import type { Site } from '../sites/site.types';

export interface AppWorld {
  site: Pick<Site, 'status'>;
  unfinished: UnfinishedWorkflow | null;
  hasApp: boolean;
}

/** May the site's application be restarted? */
export function refuseRestart({ site, unfinished, hasApp }: AppWorld): Refusal | null {
  const refusal = refusalByWorkflow(unfinished);
  if (refusal !== null) return refusal;
  if (!hasApp) return { code: 'no_app' };
  if (site.status === 'suspended') return { code: 'site_suspended' };
  return isReady(site.status) ? null : { code: 'site_not_ready' };
}
