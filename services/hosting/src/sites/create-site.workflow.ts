import { siteDatabaseSchema, sitePlatformSchema } from '@drydock/contracts/hosting/sites';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { hostOf } from '../providers/site-host';
import { askSite, forNewSite, outcomeOf } from './ask-site';
import { definitely } from './definite-failure';
import { serves } from './probe.rules';
import { changeStatus, forgetVendorPackage, recordUrl, recordVendorPackage, releaseDomain } from './site.store';

/**
 * Makes a site, which becomes `active` once it serves. A site that does not serve is removed from its host, becomes
 * `failed` and gives up its domain.
 */
export const createSiteWorkflow = defineWorkflow({
  kind: 'create_site',
  /** Without `database` the site gets the default of the platform. */
  input: z.strictObject({ domain: z.string(), platform: sitePlatformSchema, database: siteDatabaseSchema.optional() }),
})
  .step('provision', {
    run: async (step, context) => {
      const { platform, ...wanted } = step.input;
      const host = hostOf(context.siteHosts, platform);
      const { url, vendorPackageId = null } = await definitely(host.create(refOf(step), wanted, fencedCall(step)));
      return { url, vendorPackageId };
    },
    undo: (step, context) => hostOf(context.siteHosts, step.input.platform).destroy(refOf(step), fencedCall(step)),
    commit: async (tx, step, { url, vendorPackageId }) => {
      await recordUrl(tx, step.subject.id, url);
      if (vendorPackageId !== null) await recordVendorPackage(tx, refOf(step), vendorPackageId);
    },
  })
  .step('probe', {
    run: async (step, context) => {
      const probe = await askSite(context, step, step.input.platform, forNewSite);
      if (serves(probe)) return;
      const outcome = outcomeOf(probe);
      throw fail('step_failed', {
        detail: `The new site does not serve. ${outcome}.`,
        internal: `${outcome}: ${probe.detail}`,
      });
    },
  })
  .onEnd({
    succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'active'),
    failed: async (tx, run) => {
      await changeStatus(tx, run.subject.id, 'failed');
      await recordUrl(tx, run.subject.id, '');
      await releaseDomain(tx, run.subject.id);
      await forgetVendorPackage(tx, run.subject.id);
    },
  })
  .build();
