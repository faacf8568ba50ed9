import { isPurged, purgeDueAt, reasonNotRestorable } from './deleted-site.rules';

const now = new Date('2030-02-01T00:00:00.000Z');
const record = {
  restoredAt: null as Date | null,
  purgedAt: null as Date | null,
  deletedAt: new Date('2030-01-20T00:00:00.000Z'),
  backupRetentionDays: 30,
  reason: 'customer' as 'customer' | 'abuse',
};
const fine = { record, hasObject: true, isDomainHeld: false, isStaff: false };
const abused = { ...record, reason: 'abuse' as const };
/** Every reason against a restore holds here. From case to case one reason is taken away. */
const worst = {
  record: { ...abused, restoredAt: now, purgedAt: now },
  hasObject: false,
  isDomainHeld: true,
  isStaff: false,
};

it.each([
  ['already_restored', worst],
  ['purged', { ...worst, record: { ...worst.record, restoredAt: null } }],
  ['abuse_hold', { ...worst, record: abused }],
  ['no_backup', { ...worst, record }],
  ['domain_in_use', { ...worst, record, hasObject: true }],
  ['', fine],
] as const)('the first reason of many is %j', (reason, world) => {
  expect(reasonNotRestorable(world, now)).toBe(reason);
});

it('an abuse hold stops customers and not staff', () => {
  expect(reasonNotRestorable({ ...fine, record: abused }, now)).toBe('abuse_hold');
  expect(reasonNotRestorable({ ...fine, record: abused, isStaff: true }, now)).toBe('');
});

it('a site counts as purged from the moment when its retention ends', () => {
  const dueAt = purgeDueAt(record);
  expect(dueAt.toISOString()).toBe('2030-02-19T00:00:00.000Z');
  expect([isPurged(record, new Date(dueAt.getTime() - 1)), isPurged(record, dueAt)]).toEqual([false, true]);
  expect(reasonNotRestorable(fine, dueAt)).toBe('purged');
});

it('no plan keeps a deleted site longer than the platform’s maximum', () => {
  expect(purgeDueAt({ ...record, backupRetentionDays: 400 }).toISOString()).toBe('2030-04-20T00:00:00.000Z');
});
