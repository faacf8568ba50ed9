const form = /^\d+(?:\.\d+)*$/;

/** A version such as `16` or `8.4`: ASCII digits and dots alone. */
export const isVersion = (text: string): boolean => form.test(text) && text.length <= 32;

/**
 * Negative when `a` is older than `b`, positive when it is newer. Compares part by part as integers of any size; a
 * missing part counts as 0. Both must be versions.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(BigInt));
  for (let part = 0; part < Math.max(left?.length ?? 0, right?.length ?? 0); part += 1) {
    const [mine, other] = [left?.[part] ?? 0n, right?.[part] ?? 0n];
    if (mine !== other) return mine < other ? -1 : 1;
  }
  return 0;
}
