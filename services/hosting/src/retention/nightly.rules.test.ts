import { uuidv7 } from 'uuidv7';
import { decideNightly, lastSlot, type SiteOfTheNight, slotMinute } from './nightly.rules';

const id = '01890000-0000-7000-8000-000000000078';
const at = (time: string): Date => new Date(`2026-11-21T${time}:00Z`);
const createdAt = new Date('2026-01-01T00:00:00Z');
const site: SiteOfTheNight = { id, platform: 'local', status: 'active', createdAt, isBusy: false, scheduled: [] };

const isDue = (of: SiteOfTheNight, now: Date): boolean => decideNightly(of, now).isDue;
const nextLook = (of: SiteOfTheNight, now: Date): Date => decideNightly(of, now).nextLookAt;

it('gives each site its minute of the night, and all of them together the whole night', () => {
  expect(slotMinute(id)).toBe(0x78);
  const minutes = Array.from({ length: 3_600 }, () => slotMinute(uuidv7()));
  expect(Math.max(...minutes)).toBeLessThan(360);
  for (const hour of [0, 1, 2, 3, 4, 5])
    expect(minutes.filter((minute) => Math.floor(minute / 60) === hour).length).toBeGreaterThan(400);
});

it('takes the slot of yesterday until the slot of today has come', () => {
  expect(lastSlot(id, at('01:59'))).toEqual(new Date('2026-11-20T02:00:00Z'));
  expect(lastSlot(id, at('02:00'))).toEqual(at('02:00'));
});

describe('a nightly backup is due', () => {
  it('once the slot has come and until a backup is taken', () => {
    expect(isDue(site, at('02:00'))).toBe(true);
    expect(isDue({ ...site, scheduled: [{ createdAt: at('02:01'), hasFailed: false }] }, at('03:00'))).toBe(false);
    expect(isDue({ ...site, scheduled: [{ createdAt: at('01:59'), hasFailed: false }] }, at('03:00'))).toBe(true);
  });

  it('also when no worker ran in the slot', () => {
    expect(isDue(site, at('17:00'))).toBe(true);
  });

  it('again after a failure, and not for ever', () => {
    const failed = { createdAt: at('02:01'), hasFailed: true };
    expect(isDue({ ...site, scheduled: [failed, failed] }, at('03:00'))).toBe(true);
    expect(isDue({ ...site, scheduled: [failed, failed, failed] }, at('03:00'))).toBe(false);
  });

  it('not while there is other work on the site, and then again', () => {
    expect(isDue({ ...site, isBusy: true }, at('03:00'))).toBe(false);
    expect(isDue(site, at('03:10'))).toBe(true);
  });

  it('never of a site that was made after its slot, cannot be read, or is backed up elsewhere', () => {
    expect(isDue({ ...site, createdAt: at('02:30') }, at('03:00'))).toBe(false);
    expect(isDue({ ...site, status: 'restoring' }, at('03:00'))).toBe(false);
    expect(isDue({ ...site, platform: 'vendor' }, at('03:00'))).toBe(false);
  });
});

describe('a site is considered again', () => {
  const tomorrow = new Date('2026-11-22T02:00:00Z');

  it('at its next slot when its backup is begun, was taken, or cannot be taken at all', () => {
    expect(nextLook(site, at('03:00'))).toEqual(tomorrow);
    expect(nextLook({ ...site, scheduled: [{ createdAt: at('02:01'), hasFailed: false }] }, at('03:00'))).toEqual(
      tomorrow,
    );
    expect(nextLook({ ...site, platform: 'vendor' }, at('03:00'))).toEqual(tomorrow);
    expect(nextLook({ ...site, createdAt: at('02:30'), isBusy: true }, at('03:00'))).toEqual(tomorrow);
  });

  it('minutes later when a backup is due that cannot be begun now', () => {
    expect(nextLook({ ...site, isBusy: true }, at('03:00'))).toEqual(at('03:05'));
    expect(nextLook({ ...site, status: 'restoring' }, at('03:00'))).toEqual(at('03:05'));
  });
});
