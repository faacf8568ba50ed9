import { timingSafeEqual } from 'node:crypto';

/** Compares in constant time, so that timing reveals nothing about a token except its length. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Tells whether `token` is one of the comma-separated tokens in `known`. During a rotation `known` has two tokens. */
export const isOneOf = (known: string, token: string): boolean => known.split(',').some((each) => isSame(each, token));

/** The holder of a token, and whether this token may change anything. */
export interface TokenHolder {
  name: string;
  mayChange: boolean;
}

export function holderOf(
  token: string,
  tokens: ReadonlyMap<string, string>,
  readerTokens: ReadonlyMap<string, string> = new Map(),
): TokenHolder | undefined {
  for (const [name, known] of tokens) if (isOneOf(known, token)) return { name, mayChange: true };
  for (const [name, known] of readerTokens) if (isOneOf(known, token)) return { name, mayChange: false };
  return undefined;
}

export const parseOptionalTokens = (text: string | undefined): ReadonlyMap<string, string> =>
  text === undefined ? new Map() : parseTokens(text);

/** Parses `name=token,name=token`. A part without a name is a further token of the preceding name. */
export function parseTokens(text: string): ReadonlyMap<string, string> {
  const tokens = new Map<string, string>();
  let name = '';
  for (const part of text.split(',')) {
    const cut = part.indexOf('=');
    const [known, token] = [tokens.get(name), part.slice(cut + 1)];
    if (cut === 0 || token === '' || (cut < 0 && known === undefined))
      throw new Error('expected name=token, separated by commas');
    if (cut > 0) name = part.slice(0, cut);
    tokens.set(name, cut > 0 ? token : `${known},${token}`);
  }
  return tokens;
}
