import { auditRowsOf } from '@drydock/service/testing/audit-log';
import type { CrashLook } from '@drydock/testing/crash-every-step';
import { lookAt } from '@drydock/workflow/testing/workflow-record';
import type { HostingWorld } from './hosting-world';
import type { SiteState } from './site-state';

/** A workflow on a site, for the tests that crash its worker. */
export interface SiteRun {
  workflowId: string;
  siteId: string;
}

/** Reads the run through the API, with the path of its site. */
export const lookAtRun = ({ api }: HostingWorld, { workflowId, siteId }: SiteRun): Promise<CrashLook> =>
  lookAt(api, `/v1/sites/${siteId}/workflows/${workflowId}`);

/**
 * Works like {@link lookAtRun}, and also counts the entries of the run in the audit log. The crash tests expect one.
 */
export const lookAtAuditedRun = async (world: HostingWorld, run: SiteRun): Promise<CrashLook> => ({
  ...(await lookAtRun(world, run)),
  auditRows: await auditRowsOf(world.api, run.workflowId),
});

export const isHosted = ({ host }: HostingWorld, siteId: string): Promise<boolean> =>
  host.readSite(siteId).then(
    () => true,
    () => false,
  );

/** The state of a site before its restore (`old`), and its expected state after the restore (`wanted`). */
export interface TwoStates {
  old: SiteState;
  wanted: SiteState;
}

/** Tells whether the site is completely in its old state or in its wanted state. @throws Error for any other state */
export function oldOrNew(found: SiteState, known: TwoStates | undefined): 'old' | 'new' {
  const state = JSON.stringify(found);
  if (state === JSON.stringify(known?.wanted)) return 'new';
  if (state === JSON.stringify(known?.old)) return 'old';
  throw new Error(`neither the one nor the other: ${state}`);
}
