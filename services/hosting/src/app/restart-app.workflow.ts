import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { audit } from '@drydock/service/effects';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { hostOf, SiteHostError, type SiteHostRefusal } from '../providers/site-host';
import { sitePath } from '../sites/site.types';

const triesMax = 3;

const codeOfRefusal: Partial<Record<SiteHostRefusal, ProblemCode>> = {
  no_app: 'no_app',
  restart_blocked: 'app_restart_blocked',
  sandbox_unavailable: 'sandbox_unavailable',
  unsupported: 'platform_unsupported',
};

/** Touches the restart file of the application. Then makes a request, because only a request starts a fresh process. */
export const restartAppWorkflow = defineWorkflow({
  kind: 'restart_app',
  input: z.strictObject({ platform: z.enum(['local', 'ssh', 'vendor']) }),
})
  .step('touch', {
    timeoutSeconds: 10,
    run: async (step, context) => {
      const host = hostOf(context.siteHosts, step.input.platform);
      const { restartedAt, generation } = await host.restartApp(refOf(step), fencedCall(step)).catch(refuseForGood);
      return { restartedAt: restartedAt.toISOString(), generation };
    },
    commit: async (tx, { orgId, mode, actorKeyId, workflowId, subject }, _output, context) => {
      const entry = { orgId, mode, actorKeyId, action: 'app.restart', target: sitePath(subject.id), workflowId };
      await audit(context.database.sql(tx), entry);
    },
  })
  .step('confirm', {
    timeoutSeconds: 30,
    run: async (step, context) => {
      const host = hostOf(context.siteHosts, step.input.platform);
      const { appGeneration, detail } = await host.probe(refOf(step), fencedCall(step));
      if (appGeneration === null || appGeneration <= step.outputs.touch.generation) {
        const internal = `${detail} generation ${appGeneration}`;
        // After a failed start the site agent starts the application again only after a second. This probe may have
        // come within that second, so the step is tried again.
        throw step.failures + 1 < triesMax ? new Error(internal) : fail('app_not_started', { internal });
      }
      return { generation: appGeneration };
    },
  })
  .build();

function refuseForGood(error: unknown): never {
  const code = error instanceof SiteHostError ? codeOfRefusal[error.refusal] : undefined;
  throw code === undefined ? error : fail(code, { internal: String(error), cause: error });
}
