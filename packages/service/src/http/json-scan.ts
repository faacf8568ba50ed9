/** Deeper than any of our bodies, and far less than a recursive parser can take. */
const depthMax = 32;

/** The reason why a JSON text is refused although a parser might accept it. */
export type JsonFault = 'too deep' | 'duplicate key';

/**
 * Matches one string literal or one structural character; numbers, true, false and null are skipped. A string without a
 * closing quote matches to the end of the text. Otherwise the end would be searched again from each quote in it, which
 * takes seconds.
 */
const tokens = /"(?:[^"\\]|\\.?)*"?|[{}[\],:]/gs;

/**
 * Finds nesting beyond {@link depthMax} and duplicate keys, which JSON.parse accepts (the last one wins, so two readers
 * of one body could see two requests). One pass; the parser checks the syntax.
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

/** Keys are compared after their escapes are resolved: `"\u0061"` is `"a"`. */
function unescapeKey(literal: string): string | undefined {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  try {
    return String(JSON.parse(literal));
  } catch {
    return undefined;
  }
}
