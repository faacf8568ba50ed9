import { timingSafeEqual } from 'node:crypto';

/** Compares in a time that tells nothing. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** `name=token,name=token` */
export function parseTokens(text: string): ReadonlyMap<string, string> {
  const pairs = text.split(',').map((pair) => {
    const cut = pair.indexOf('=');
    if (cut < 1 || cut === pair.length - 1) throw new Error('expected name=token, separated by commas');
    return [pair.slice(0, cut), pair.slice(cut + 1)] as const;
  });
  return new Map(pairs);
}
