/** The only place of this package that reads the wall clock. Milliseconds since 1970. */
export const systemNowMs = (): number => Date.now();
