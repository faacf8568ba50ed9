export interface ProblemDefinition {
  status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 415 | 422 | 429 | 431 | 500 | 503;
  title: string;
  /** The caller's next step; the page `/problems/{code}` shows it and it is the default `detail`. */
  advice: string;
  /**
   * Whether the refusal may end by itself after a while. It is never stored for an Idempotency-Key, so that the retry
   * is executed.
   */
  transient?: true;
}

/** Keeps the codes and their statuses as literal types, while every entry is checked. */
export const define = <const T extends Record<string, ProblemDefinition>>(
  codes: T,
): { readonly [Code in keyof T]: ProblemDefinition & { readonly status: T[Code]['status'] } } => codes;
