import { fail } from '@drydock/workflow/step-error';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { createSiteHead } from './create-site.head';
import { serves } from './probe.rules';
import { changeStatus, recordUrl, releaseDomain } from './site.store';
import { orderOf, refOf, type WorkContext } from './work';

/** A folder, a database and a URL; active once the site really serves. One that never does gives its domain back. */
export const createSiteWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(createSiteHead)
    .step('provision', {
      do: async (step) => {
        const { url } = await hostOf(context.siteHosts, step.input.platform).create(refOf(step), step.input.domain, orderOf(step));
        return { url };
      },
      undo: (step) => hostOf(context.siteHosts, step.input.platform).destroy(refOf(step), orderOf(step)),
      commit: (tx, step, { url }) => recordUrl(tx, step.subject.id, url),
    })
    .step('probe', {
      do: async (step) => {
        const probe = await hostOf(context.siteHosts, step.input.platform).probe(refOf(step), orderOf(step));
        if (!serves(probe)) throw fail('step_failed', { internal: `HTTP ${probe.httpStatus}, SQL ${probe.isSqlOk}: ${probe.detail}` });
      },
    })
    .settle({
      succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'active'),
      failed: async (tx, run) => {
        await changeStatus(tx, run.subject.id, 'failed');
        await recordUrl(tx, run.subject.id, '');
        await releaseDomain(tx, run.subject.id);
      },
    })
    .build();
