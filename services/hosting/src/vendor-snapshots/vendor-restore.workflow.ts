import { setTimeout as wait } from 'node:timers/promises';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { audit } from '@drydock/service/effects';
import { conclude, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, type WorkContext } from '../context/context';
import { timelineOf } from '../providers/vendor-timeline';
import { sitePath } from '../sites/site.types';
import {
  followOrder,
  type OrderPlan,
  type OrderToSend,
  recheckOrder,
  sendOrder,
  vendorOrderInput,
} from './vendor-order.steps';
import { refuseVendorPoint, refuseVendorRestore } from './vendor-snapshot.rules';

const input = z.strictObject({ ...vendorOrderInput, handle: z.string(), isBeside: z.boolean() });

type Input = z.infer<typeof input>;

/**
 * Has the vendor restore a point, and follows the vendor's job to its end. After the request was sent nothing can be
 * undone, because the vendor offers no undo and takes no safety copy. The workflow fails if the job fails.
 */
export const vendorRestoreWorkflow = defineWorkflow({ kind: 'vendor_restore', input })
  .step('recheck', {
    weight: 0.2,
    run: (step, context) =>
      recheckOrder(context, step, (listing) => refuseVendorRestore({ listing, unfinished: null }, step.input)),
  })
  .pointOfNoReturn()
  .step('send', {
    weight: 0.5,
    run: async (step, context) => {
      const plan = step.outputs.recheck;
      return plan.failsOnPurpose ? { jobId: '' } : sendOrder(context, step, orderOf(context, step, plan));
    },
    commit: async (tx, step, _output, context) => {
      const { orgId, mode, actorKeyId, workflowId, subject } = step;
      const entry = {
        orgId,
        mode,
        actorKeyId,
        action: 'vendor_snapshot.restore',
        target: sitePath(subject.id),
        workflowId,
      };
      await audit(context.database.sql(tx), entry);
    },
  })
  .step('follow', {
    weight: 4,
    run: async (step, context) => {
      const { failsOnPurpose, slowsOnPurpose } = step.outputs.recheck;
      if (slowsOnPurpose) await wait(context.slowMs, undefined, { signal: step.signal });
      if (failsOnPurpose)
        throw conclude('vendor_restore_failed', { internal: 'the sandbox site asked for it by its name' });
      await followOrder(context, step, step.outputs.send.jobId, 'vendor_restore_failed');
    },
  })
  .build();

function orderOf(
  context: WorkContext,
  step: StepContext<Input, unknown>,
  { name, jobsBefore }: OrderPlan,
): OrderToSend {
  const { packageId, scope, itemId, handle, isBeside } = step.input;
  const timeline = timelineOf(context.vendorTimelines, step.mode);
  const item = { scope, id: itemId };
  return {
    findJob: async () => {
      const jobs = await timeline.listJobs(packageId, item, step.signal);
      return jobs.find(
        (job) =>
          !jobsBefore.includes(job.id) && job.kind === 'restore' && job.handle === handle && job.isBeside === isBeside,
      );
    },
    send: () => timeline.restore(packageId, { item, name, handle, isBeside }, step.signal),
    explain: async (): Promise<ProblemCode> => {
      const listing = await timeline.read(packageId, step.signal).catch(() => null);
      return (listing === null ? null : refuseVendorPoint(listing, step.input)?.code) ?? 'scope_not_restorable';
    },
  };
}
