import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { VendorListing } from '../providers/vendor-timeline.types';
import { viewVendorSurface } from './read-timelines';

/** A listing without a running job: the job has ended, or Drydock's request has not reached the vendor yet. */
const idle: VendorListing = {
  isAvailable: true,
  isPermitted: true,
  isPro: false,
  isAttached: true,
  canBackUp: true,
  hasDeadWeb: false,
  web: null,
  databases: [],
  mailboxes: [],
};
const work = (kind: string, status: UnfinishedWorkflow['status'] = 'running'): UnfinishedWorkflow => ({
  id: 'w',
  kind,
  status,
});

describe('can_back_up', () => {
  it('is the vendor’s own word while nobody here is at work on the site, whatever the other flags say', () => {
    const told = [true, false].map(
      (canBackUp) => viewVendorSurface({ ...idle, isAttached: !canBackUp, canBackUp }, null).can_back_up,
    );
    expect(told).toEqual([true, false]);
  });

  it.each([
    ['vendor_take_snapshot', 'queued', true],
    ['vendor_take_snapshot', 'running', true],
    ['vendor_restore', 'running', true],
    ['vendor_restore', 'needs_attention', false],
    ['delete_site', 'running', true],
  ] as const)(
    'is false while %s is %s, for a snapshot would be refused, and in_progress is %s',
    (kind, status, isInProgress) => {
      expect(viewVendorSurface(idle, work(kind, status))).toMatchObject({
        can_back_up: false,
        in_progress: isInProgress,
      });
    },
  );
});
