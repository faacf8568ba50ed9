import type { Call } from '../protocol/call';
import { invalidField } from './hetzner-errors';

const perPageMax = 50;

function wholeNumber(call: Call, name: string, fallback: number): number {
  const text = call.query.get(name);
  if (text === null) return fallback;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw invalidField(name, 'must be a positive integer');
  return Number(text);
}

/** Returns a page of a listing, with its `meta`. A per_page above 50 counts as 50. */
export function pageOf<T>(call: Call, items: readonly T[]): { items: T[]; meta: unknown } {
  const page = wholeNumber(call, 'page', 1);
  const perPage = Math.min(wholeNumber(call, 'per_page', 25), perPageMax);
  const lastPage = Math.max(1, Math.ceil(items.length / perPage));
  return {
    items: items.slice((page - 1) * perPage, page * perPage),
    meta: {
      pagination: {
        page,
        per_page: perPage,
        previous_page: page > 1 ? page - 1 : null,
        next_page: page < lastPage ? page + 1 : null,
        last_page: lastPage,
        total_entries: items.length,
      },
    },
  };
}

/**
 * Sorts by a query such as `sort=created:desc`. @throws Refusal 422 for a field that the listing cannot be sorted by
 */
export function sorted<T extends Readonly<Record<string, unknown>>>(
  call: Call,
  items: readonly T[],
  fields: readonly string[],
): T[] {
  const wish = call.query.get('sort') ?? 'id:asc';
  const [field = '', direction = 'asc'] = wish.split(':');
  if (!fields.includes(field) || !['asc', 'desc'].includes(direction))
    throw invalidField('sort', `cannot sort by ${wish}`);
  const sign = direction === 'asc' ? 1 : -1;
  return [...items].sort((one, other) => sign * compare(one[field], other[field]));
}

function compare(one: unknown, other: unknown): number {
  if (typeof one === 'number' && typeof other === 'number') return one - other;
  return String(one) < String(other) ? -1 : String(one) > String(other) ? 1 : 0;
}

/** Tells whether labels match a selector such as `key=value,key2`. */
export const matchesLabels = (selector: string, labels: Readonly<Record<string, string>>): boolean =>
  selector.split(',').every((part) => {
    const [key = '', value] = part.split(/==?/);
    return Object.hasOwn(labels, key) && (value === undefined || labels[key] === value);
  });
