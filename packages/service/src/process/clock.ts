/** The one place of this package that reads the wall clock; everything else is given the time. Milliseconds since 1970. */
export const systemNowMs = (): number => Date.now();
