/** Deeper than any body of ours; far less than what overflows a recursive parser. */
const depthMax = 32;

/** Why a JSON text is refused although a parser might take it. */
export type JsonFault = 'too deep' | 'duplicate key';

/**
 * One string literal or one structural character at a time; numbers, true, false and null fall through. A string that is never closed goes to the end: were
 * it no match, its end would be looked for again from each quote in it, for seconds.
 */
const tokens = /"(?:[^"\\]|\\.?)*"?|[{}[\],:]/gs;

/**
 * Finds nesting beyond {@link depthMax} and keys that occur twice in one object, which JSON.parse lets pass (the last one wins: two readers of
 * one body could see two requests). One pass; syntax is left to the parser.
 */
export function findJsonFault(text: string): JsonFault | undefined {
  const open: Array<Set<string> | null> = [];
  let candidate: string | undefined;
  for (const [token] of text.matchAll(tokens)) {
    if (token === '{' || token === '[') {
      if (open.length >= depthMax) return 'too deep';
      open.push(token === '{' ? new Set() : null);
    } else if (token === '}' || token === ']') {
      open.pop();
    } else if (token === ':') {
      const keys = open.at(-1);
      const key = candidate === undefined ? undefined : unescapeKey(candidate);
      if (keys !== undefined && keys !== null && key !== undefined) {
        if (keys.has(key)) return 'duplicate key';
        keys.add(key);
      }
    }
    candidate = token.startsWith('"') ? token : undefined;
  }
  return undefined;
}

/** `"a"` is `"a"`: keys are compared as what they mean. */
function unescapeKey(literal: string): string | undefined {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return String(JSON.parse(literal));
  } catch {
    return undefined;
  }
}
