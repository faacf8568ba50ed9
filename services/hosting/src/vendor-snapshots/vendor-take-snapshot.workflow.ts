import { audit } from '@drydock/service-kit/audit';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { timelineOf } from '../providers/vendor-timeline';
import { sitePath } from '../sites/site-names';
import type { WorkContext } from '../sites/work';
import { followOrder } from './follow-order';
import { recheckOrder } from './recheck-order';
import { sendOrder } from './send-order';
import { refuseVendorSnapshot } from './vendor-snapshot.rules';
import { vendorTakeSnapshotHead } from './vendor-take-snapshot.head';

/** Has the vendor take a snapshot, and follows its job to the end. */
export const vendorTakeSnapshotWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(vendorTakeSnapshotHead)
    .step('recheck', {
      weight: 0.2,
      run: (step) => recheckOrder(context, step, (listing) => refuseVendorSnapshot({ listing, unfinished: null }, step.input)),
    })
    .pointOfNoReturn()
    .step('send', {
      weight: 0.5,
      run: (step) => {
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
      commit: async (tx, step) => {
        const { orgId, mode, actorKeyId, workflowId, subject } = step;
        const entry = { orgId, mode, actorKeyId, action: 'vendor_snapshot.take', target: sitePath(subject.id), workflowId };
        await audit(context.database.sql(tx), entry);
      },
    })
    .step('follow', {
      weight: 4,
      run: (step) => followOrder(context, step, step.outputs.send.jobId, 'vendor_snapshot_failed'),
    })
    .build();
