/** Full jitter keeps workflows that failed together from coming back together; half a second at least, so that a pause is one. */
export function backoffSeconds(failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(60, 2 ** Math.min(failures, 10));
  return 0.5 + random() * ceiling;
}
