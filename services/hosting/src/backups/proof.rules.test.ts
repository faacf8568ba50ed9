import { type BackupProofs, immutabilityOf, isDrillDue, restoreDrillOf } from './proof.rules';

const now = new Date('2026-11-21T12:00:00Z');
const hoursAgo = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000);
const none: BackupProofs = { isOffsiteEnabled: true, immutability: null, refusedAt: null, drill: null };

describe('immutability is claimed', () => {
  it('never before it was checked', () => {
    expect(immutabilityOf(none, now)).toEqual({ isImmutable: false, verifiedAt: null, reason: 'never_checked' });
  });

  it('for 48 hours after a delete was refused, and not a moment longer', () => {
    const proven = (hours: number): BackupProofs => ({
      ...none,
      immutability: { reason: '', finishedAt: hoursAgo(hours) },
      refusedAt: hoursAgo(hours),
    });
    expect(immutabilityOf(proven(48), now)).toEqual({ isImmutable: true, verifiedAt: hoursAgo(48), reason: '' });
    expect(immutabilityOf(proven(48.001), now)).toEqual({
      isImmutable: false,
      verifiedAt: hoursAgo(48.001),
      reason: 'stale',
    });
  });

  it('no more once a later check failed, whose reason it gives beside the time of the last refusal', () => {
    const failed: BackupProofs = {
      ...none,
      immutability: { reason: 'delete_succeeded', finishedAt: hoursAgo(1) },
      refusedAt: hoursAgo(25),
    };
    expect(immutabilityOf(failed, now)).toEqual({
      isImmutable: false,
      verifiedAt: hoursAgo(25),
      reason: 'delete_succeeded',
    });
  });
});

describe('a passed drill is claimed', () => {
  it('never before one has run', () => {
    expect(restoreDrillOf(none, 'local', now)).toEqual({ hasPassed: false, finishedAt: null, reason: 'never_drilled' });
  });

  it.each([
    ['', 9 * 24, true, ''],
    ['', 9 * 24 + 0.001, false, 'stale'],
    ['content_mismatch', 1, false, 'content_mismatch'],
  ] as const)('of outcome %j %d hours ago: %s', (reason, hours, hasPassed, said) => {
    const drilled = { ...none, drill: { reason, finishedAt: hoursAgo(hours) } };
    expect(restoreDrillOf(drilled, 'local', now)).toEqual({ hasPassed, finishedAt: hoursAgo(hours), reason: said });
  });
});

it('no drill is claimed of a platform whose backups are never drilled, whatever was proven of others', () => {
  const passed: BackupProofs = { ...none, drill: { reason: '', finishedAt: hoursAgo(1) } };
  expect(restoreDrillOf(passed, 'ssh', now)).toEqual({ hasPassed: false, finishedAt: null, reason: 'no_drill_site' });
});

it('a drill is due a week after one that passed, and at once after one that did not', () => {
  expect(isDrillDue({ reason: '', finishedAt: hoursAgo(6 * 24) }, 6.5, now)).toBe(false);
  expect(isDrillDue({ reason: '', finishedAt: hoursAgo(7 * 24) }, 6.5, now)).toBe(true);
  expect(isDrillDue({ reason: 'restore_failed', finishedAt: hoursAgo(1) }, 6.5, now)).toBe(true);
  expect(isDrillDue(null, 6.5, now)).toBe(true);
});
