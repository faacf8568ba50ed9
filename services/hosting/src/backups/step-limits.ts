/** Steps that move every byte of a site: 4 TB, the most an archive may hold, at 200 MB/s; failures that may pass are tried more often, since much is lost. */
export const movingLimits = { timeoutSeconds: 6 * 3_600, attemptsMax: 8 };

/** Steps during which customers' requests wait. */
export const frozenLimits = { timeoutSeconds: 20, attemptsMax: 5 };

/** How long a site stays frozen when the worker dies: far over the milliseconds between two steps, under what a browser waits for. */
export const freezeTtlMs = 5_000;
