import { audit } from '@drydock/service/effects';
import { z } from 'zod';
import { defineWorkflow } from '../context/context';
import { timelineOf } from '../providers/vendor-timeline';
import { sitePath } from '../sites/site.types';
import { followOrder, recheckOrder, sendOrder, vendorOrderInput } from './vendor-order.steps';
import { refuseVendorSnapshot } from './vendor-snapshot.rules';

export const vendorTakeSnapshotWorkflow = defineWorkflow({
  kind: 'vendor_take_snapshot',
  input: z.strictObject(vendorOrderInput),
})
  .step('recheck', {
    weight: 0.2,
    run: (step, context) =>
      recheckOrder(context, step, (listing) => refuseVendorSnapshot({ listing, unfinished: null }, step.input)),
  })
  .pointOfNoReturn()
  .step('send', {
    weight: 0.5,
    run: (step, context) => {
      const { packageId, scope, itemId } = step.input;
      const { jobsBefore } = step.outputs.recheck;
      const timeline = timelineOf(context.vendorTimelines, step.mode);
      const item = { scope, id: itemId };
      return sendOrder(context, step, {
        findJob: async () => {
          const jobs = await timeline.listJobs(packageId, item, step.signal);
          return jobs.find((job) => !jobsBefore.includes(job.id) && job.kind === 'snapshot');
        },
        send: () => timeline.takeSnapshot(packageId, item, step.signal),
        explain: async () => 'snapshot_unavailable',
      });
    },
    commit: async (tx, step, _output, context) => {
      const { orgId, mode, actorKeyId, workflowId, subject } = step;
      const entry = {
        orgId,
        mode,
        actorKeyId,
        action: 'vendor_snapshot.take',
        target: sitePath(subject.id),
        workflowId,
      };
      await audit(context.database.sql(tx), entry);
    },
  })
  .step('follow', {
    weight: 4,
    run: (step, context) => followOrder(context, step, step.outputs.send.jobId, 'vendor_snapshot_failed'),
  })
  .build();
