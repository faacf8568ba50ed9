import { addMonths, billingOf, startedHours } from './server.rules';

const since = new Date('2026-01-31T10:00:00.000Z');
const server = {
  mode: 'live',
  termMonths: null,
  currency: 'EUR',
  amountMinor: 3,
  subscriptionId: null,
  activeSince: since,
  vanishedAt: null,
  status: 'active',
} as const;
const after = (hours: number): Date => new Date(since.getTime() + hours * 3_600_000);

it.each([
  [0, 1],
  [0.5, 1],
  [1, 2],
  [1.5, 2],
  [24, 25],
])('%d hours after it came up, %i have been started', (hours, started) => {
  expect(startedHours(since, after(hours))).toBe(started);
  expect(billingOf(server, after(hours))).toMatchObject({
    started_hours: started,
    charged_until: after(started).toISOString(),
  });
});

it('a machine that has vanished is not metered any further', () => {
  expect(billingOf({ ...server, vanishedAt: after(2.5) }, after(90))).toMatchObject({
    started_hours: 3,
    status: 'cancelled',
  });
});

it('a term ends on the same day of the month, or on the last day of a shorter month', () => {
  expect(addMonths(since, 1).toISOString()).toBe('2026-02-28T10:00:00.000Z');
  expect(addMonths(since, 25).toISOString()).toBe('2028-02-29T10:00:00.000Z');
  expect(addMonths(since, 12).toISOString()).toBe('2027-01-31T10:00:00.000Z');
});

it('nothing is charged before the machine can be used, nor ever in the sandbox', () => {
  const none = { status: 'none', charged_until: null, subscription_id: null };
  expect(billingOf({ ...server, activeSince: null, status: 'provisioning' }, after(9))).toMatchObject({
    ...none,
    started_hours: 0,
  });
  expect(billingOf({ ...server, mode: 'sandbox', termMonths: 12, subscriptionId: 'x' }, after(9))).toMatchObject(none);
});
