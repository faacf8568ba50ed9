import { completeLimits } from '@drydock/archive';
import { movingLimits } from './archive.steps';
import { allowanceOf, type Backup, expiryOf, refuseBackup, refuseRestore, statusAt } from './backup.rules';

const now = new Date('2030-01-02T12:00:00.000Z');
const hoursAgo = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000);
const onDemand = (hours: number, status: Backup['status'] = 'completed') => ({
  kind: 'on_demand' as const,
  status,
  createdAt: hoursAgo(hours),
});
const backup: Backup = {
  id: 'b',
  siteId: 's',
  orgId: 'o',
  mode: 'live',
  kind: 'scheduled',
  status: 'completed',
  sequence: 1,
  includesFiles: true,
  includesDatabase: true,
  archive: null,
  errorCode: '',
  skipped: { count: 0, sample: [] },
  answer: { httpStatus: null, isSqlOk: null },
  createdAt: hoursAgo(1),
  completedAt: hoursAgo(1),
  expiresAt: null,
  lockedUntil: null,
  location: 'worker_host',
};
const active = { status: 'active', platform: 'local' } as const;
const free = { site: active, unfinished: null };
const busy = { site: active, unfinished: { id: 'w', kind: 'take_backup', status: 'running' } } as const;
const parked = { site: active, unfinished: { id: 'w', kind: 'restore_backup', status: 'needs_attention' } } as const;
const spent = allowanceOf(
  [1, 2, 3, 4, 23].map((hours) => onDemand(hours)),
  now,
);
const unspent = allowanceOf([], now);

describe('the allowance', () => {
  it.each([
    ['nothing yet', [], 0, null],
    ['one that failed', [onDemand(1, 'failed')], 0, null],
    ['one that runs', [onDemand(1, 'running')], 1, null],
    [
      'a safety copy and a scheduled one',
      [
        { ...onDemand(1), kind: 'pre_restore' as const },
        { ...onDemand(1), kind: 'scheduled' as const },
      ],
      0,
      null,
    ],
    ['one that is exactly a day old', [onDemand(24)], 0, null],
    ['four', [1, 2, 3, 4].map((hours) => onDemand(hours)), 4, null],
    ['five', [1, 2, 3, 4, 23].map((hours) => onDemand(hours)), 5, '2030-01-02T13:00:00.000Z'],
    [
      'six, from before the limit was lowered',
      [1, 2, 3, 4, 22, 23].map((hours) => onDemand(hours)),
      6,
      '2030-01-02T14:00:00.000Z',
    ],
  ])('after %s', (_what, backups, used, nextAt) => {
    const allowance = allowanceOf(backups, now);
    expect([allowance.used, allowance.remaining, allowance.nextAt?.toISOString() ?? null]).toEqual([
      used,
      Math.max(0, 5 - used),
      nextAt,
    ]);
  });
});

it.each([
  ['a site at rest', free, unspent, null],
  ['a spent allowance', free, spent, { code: 'on_demand_limit_reached', retryAfterSeconds: 3_600 }],
  [
    'work in progress before a spent allowance',
    busy,
    spent,
    { code: 'operation_in_progress', extra: { workflow_id: 'w' } },
  ],
  ['work that waits for staff', parked, unspent, { code: 'needs_attention', extra: { workflow_id: 'w' } }],
  [
    'a platform without backups',
    { ...free, site: { ...active, platform: 'vendor' as const } },
    unspent,
    { code: 'platform_unsupported' },
  ],
  [
    'a site that failed',
    { ...free, site: { ...active, status: 'failed' as const } },
    unspent,
    { code: 'site_not_ready' },
  ],
  ['a suspended site', { ...free, site: { ...active, status: 'suspended' as const } }, unspent, null],
])('a backup of %s', (_what, world, allowance, refusal) => {
  expect(refuseBackup(world, allowance, now)).toEqual(refusal);
});

it.each([
  ['a completed backup', free, backup, null],
  ['none, though work is in progress', busy, null, { code: 'backup_not_found' }],
  ['a running one', free, { ...backup, status: 'running' as const }, { code: 'backup_not_completed' }],
  ['a failed one', free, { ...backup, status: 'failed' as const }, { code: 'backup_not_completed' }],
  ['an expired one', free, { ...backup, expiresAt: now }, { code: 'backup_expired' }],
  ['a good one while another works', busy, backup, { code: 'operation_in_progress', extra: { workflow_id: 'w' } }],
  [
    'a good one before the state of the site',
    { ...busy, site: { ...active, status: 'restoring' as const } },
    backup,
    { code: 'operation_in_progress', extra: { workflow_id: 'w' } },
  ],
  [
    'a good one of a site that is provisioned',
    { ...free, site: { ...active, status: 'provisioning' as const } },
    backup,
    { code: 'site_not_ready' },
  ],
])('a restore of %s', (_what, world, point, refusal) => {
  expect(refuseRestore(world, point, now)).toEqual(refusal);
});

it('expires when its retention ends and not before', () => {
  const expiresAt = expiryOf(hoursAgo(24), 1);
  expect(expiresAt).toEqual(now);
  expect(statusAt({ status: 'completed', expiresAt }, new Date(now.getTime() - 1))).toBe('completed');
  expect(statusAt({ status: 'completed', expiresAt }, now)).toBe('expired');
  expect(statusAt({ status: 'failed', expiresAt }, now)).toBe('failed');
});

test('a step that moves the largest archive at 200 MB/s ends in time', () => {
  expect(movingLimits.timeoutSeconds).toBeGreaterThan(completeLimits().rawBytesMax / 200e6);
});
