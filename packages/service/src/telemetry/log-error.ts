import type { Problem } from '@drydock/contracts/platform/problem';
import pino from 'pino';

/** Fields in which Postgres quotes the refused row or value: customers' data, which must not be logged. */
const rowFields: readonly string[] = ['detail', 'where', 'internalQuery'];
/** An error of Prisma contains Postgres' own three levels down. */
const depthMax = 6;

/** An error in pino's form, without Postgres' quotes from its tables. */
export const serializeError = (error: unknown): unknown =>
  error instanceof Error ? withoutRows(pino.stdSerializers.err(error), 0) : error;

function withoutRows(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutRows(item, depth + 1));
  if (
    typeof value !== 'object' ||
    value === null ||
    depth > depthMax ||
    !(depth === 0 || isPlain(value) || value instanceof Error)
  )
    return value;
  // Only Postgres' errors have a severity. The `detail` of other errors is the text for the caller.
  const shown = Object.entries(value).filter(([name]) => !('severity' in value && rowFields.includes(name)));
  return Object.fromEntries(shown.map(([name, item]) => [name, withoutRows(item, depth + 1)]));
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A continuing outage is logged again this often. */
const outageMs = 30_000;
const toldMs = new Map<unknown, number>();

/**
 * Whether a refusal belongs to an outage of a dependency that was logged in the last 30 s. Its requests are logged
 * without the cause and not as errors: while a database is away every request fails for the same reason.
 */
export function isKnownOutage({ code, details }: Problem): boolean {
  if (code !== 'dependency_unavailable') return false;
  const dependency = details.extra?.['dependency'];
  const nowMs = performance.now();
  if (nowMs - (toldMs.get(dependency) ?? Number.NEGATIVE_INFINITY) < outageMs) return true;
  toldMs.set(dependency, nowMs);
  return false;
}
