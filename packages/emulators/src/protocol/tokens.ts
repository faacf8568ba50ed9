import { timingSafeEqual } from 'node:crypto';

/** Compares in a time that tells nothing. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The holder of a token, and whether it may change anything. */
export interface TokenHolder {
  name: string;
  mayChange: boolean;
}

/** The holder of a token; undefined for a token that nobody has. */
export function holderOf(
  token: string,
  tokens: ReadonlyMap<string, string>,
  readerTokens: ReadonlyMap<string, string> = new Map(),
): TokenHolder | undefined {
  for (const [name, known] of tokens) if (isSame(known, token)) return { name, mayChange: true };
  for (const [name, known] of readerTokens) if (isSame(known, token)) return { name, mayChange: false };
  return undefined;
}

/** `name=token,name=token`; none where it is not set. */
export const parseOptionalTokens = (text: string | undefined): ReadonlyMap<string, string> =>
  text === undefined ? new Map() : parseTokens(text);

/** `name=token,name=token` */
export function parseTokens(text: string): ReadonlyMap<string, string> {
  const pairs = text.split(',').map((pair) => {
    const cut = pair.indexOf('=');
    if (cut < 1 || cut === pair.length - 1) throw new Error('expected name=token, separated by commas');
    return [pair.slice(0, cut), pair.slice(cut + 1)] as const;
  });
  return new Map(pairs);
}
