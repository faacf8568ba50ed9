import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { isReady } from '../sites/site.rules';
import type { Site } from '../sites/site.types';

export interface AppWorld {
  site: Pick<Site, 'status'>;
  unfinished: UnfinishedWorkflow | null;
  /** Null: its host did not say. */
  hasApp: boolean | null;
}

/** May the site's application be restarted? */
export function refuseRestart({ site, unfinished, hasApp }: AppWorld): Refusal | null {
  const refusal = refusalByWorkflow(unfinished);
  if (refusal !== null) return refusal;
  if (hasApp === false) return { code: 'no_app' };
  if (site.status === 'suspended') return { code: 'site_suspended' };
  return isReady(site.status) ? null : { code: 'site_not_ready' };
}
