import type { OffsiteDeadlines } from '../providers/offsite-storage';

/**
 * The time for a whole probe of a customer's bucket, while the customer waits for an answer. It leaves room for a slow
 * handshake.
 */
export const probeSeconds = 7;

/** The deadlines of one call of a probe, in milliseconds. */
export const probeDeadlines: OffsiteDeadlines = { connectMs: 3_000, idleMs: 3_000, objectMs: 5_000 };

/** How long a request may look at the manifests of a chain, all of them together, in milliseconds. */
export const lookMs = 8_000;

/**
 * The limits of steps that move a site to or from a customer's storage: 200 GB over a line of 100 Mbit/s. Transient
 * failures are tried more often than in other steps.
 */
export const offsiteLimits = { timeoutSeconds: 6 * 3_600, attemptsMax: 8 };

/** How many objects are read at once. Each is in memory, mostly with 8 MB. */
export const readsAtOnce = 6;
