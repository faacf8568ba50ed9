import { z } from 'zod';

const branch = z.union([z.array(z.unknown()), z.record(z.string(), z.unknown())]);

/**
 * Replaces values by path (`servers.0.locked`). A path that does not exist is created. Text that is not JSON stays as
 * it is.
 */
export function editJson(text: string, set: Readonly<Record<string, unknown>>): string {
  if (text === '') return text;
  let value: unknown = JSON.parse(text);
  for (const [path, replacement] of Object.entries(set)) value = withValue(value, path.split('.'), replacement);
  return JSON.stringify(value);
}

function withValue(value: unknown, [key, ...rest]: readonly string[], replacement: unknown): unknown {
  if (key === undefined) return replacement;
  const parsed = branch.safeParse(value);
  const inner = parsed.success ? parsed.data : {};
  if (Array.isArray(inner))
    return inner.map((item, index) => (String(index) === key ? withValue(item, rest, replacement) : item));
  return { ...inner, [key]: withValue(inner[key], rest, replacement) };
}
