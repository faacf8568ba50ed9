import type { Problem } from '@drydock/contracts/platform/problem';
import pino from 'pino';

/** In which Postgres shows the row or the value that it refuses: customers' data, which has no place in a log. */
const rowFields: readonly string[] = ['detail', 'where', 'internalQuery'];
/** An error of Prisma has Postgres' own three levels down. */
const depthMax = 6;

/** An error as pino writes it, without what Postgres quotes from its tables. */
export const serializeError = (error: unknown): unknown =>
  error instanceof Error ? withoutRows(pino.stdSerializers.err(error), 0) : error;

function withoutRows(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutRows(item, depth + 1));
  if (typeof value !== 'object' || value === null || depth > depthMax || !(depth === 0 || isPlain(value) || value instanceof Error))
    return value;
  // Only Postgres' errors have a severity: what is called detail elsewhere is what a caller was told.
  const shown = Object.entries(value).filter(([name]) => !('severity' in value && rowFields.includes(name)));
  return Object.fromEntries(shown.map(([name, item]) => [name, withoutRows(item, depth + 1)]));
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** An outage that goes on is told again this often. */
const outageMs = 30_000;
const toldMs = new Map<unknown, number>();

/**
 * Whether a refusal belongs to an outage of a dependency that was told in the last 30 s. Its requests are logged without the cause and not as errors: a database that
 * is away fails every request for the same reason.
 */
export function isKnownOutage({ code, details }: Problem): boolean {
  if (code !== 'dependency_unavailable') return false;
  const dependency = details.extra?.['dependency'];
  const nowMs = performance.now();
  if (nowMs - (toldMs.get(dependency) ?? Number.NEGATIVE_INFINITY) < outageMs) return true;
  toldMs.set(dependency, nowMs);
  return false;
}
