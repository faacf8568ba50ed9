export interface ProblemDefinition {
  status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 412 | 415 | 422 | 429 | 431 | 500 | 503;
  title: string;
  /** The caller's next step. The page `/problems/{code}` shows it, and it is the default of `detail`. */
  advice: string;
  /**
   * Whether the refusal may end by itself after a while. The refusal is not stored for an Idempotency-Key, so that a
   * retry is carried out.
   */
  transient?: true;
}

/** Keeps the codes and statuses as literal types while every entry is checked. */
export const define = <const T extends Record<string, ProblemDefinition>>(
  codes: T,
): { readonly [Code in keyof T]: ProblemDefinition & { readonly status: T[Code]['status'] } } => codes;
