import type { ComputeServerBilling } from '@drydock/contracts/compute/compute-servers';
import type { Server } from './server.types';

type Billed = Pick<
  Server,
  'mode' | 'termMonths' | 'currency' | 'amountMinor' | 'subscriptionId' | 'activeSince' | 'vanishedAt' | 'status'
>;

const hourMs = 3_600_000;

/**
 * The bill, from the facts of the order and the clock. A machine that is gone costs nothing more; the sandbox never
 * costs anything.
 */
export function billingOf(server: Billed, now: Date): ComputeServerBilling {
  const { mode, termMonths, currency, amountMinor, subscriptionId } = server;
  const paidSince = mode === 'sandbox' ? null : server.activeSince;
  const status =
    paidSince === null ? 'none' : server.status === 'terminated' || server.vanishedAt !== null ? 'cancelled' : 'active';
  const common = {
    currency,
    amount_minor: amountMinor,
    subscription_id: paidSince === null ? null : subscriptionId,
    status,
  } as const;
  if (termMonths !== null) {
    const until = paidSince === null ? null : addMonths(paidSince, termMonths).toISOString();
    return {
      ...common,
      mode: 'term',
      interval: 'month',
      term_months: termMonths,
      started_hours: null,
      charged_until: until,
    };
  }
  const hours = paidSince === null ? 0 : startedHours(paidSince, server.vanishedAt ?? now);
  const until = paidSince === null ? null : new Date(paidSince.getTime() + hours * hourMs).toISOString();
  return {
    ...common,
    mode: 'metered',
    interval: 'hour',
    term_months: null,
    started_hours: hours,
    charged_until: until,
  };
}

/** Hours that have begun. The first begins at once. */
export const startedHours = (since: Date, until: Date): number =>
  Math.floor(Math.max(0, until.getTime() - since.getTime()) / hourMs) + 1;

/** The same day of a later month, or its last when it is shorter. */
export function addMonths(from: Date, months: number): Date {
  const to = new Date(from);
  const day = to.getUTCDate();
  to.setUTCDate(1);
  to.setUTCMonth(to.getUTCMonth() + months);
  const daysInMonth = new Date(Date.UTC(to.getUTCFullYear(), to.getUTCMonth() + 1, 0)).getUTCDate();
  to.setUTCDate(Math.min(day, daysInMonth));
  return to;
}
