import { setTimeout as wait } from 'node:timers/promises';

type Write = (fields: object, message: string) => void;

/** The methods of a log that these loops use. */
interface RoundLog {
  debug: Write;
  warn: Write;
}

export interface Looking {
  /** Ends the loop. Resolves once the running call of `look` has ended. */
  stop(): Promise<void>;
}

/** The pauses in milliseconds after a look that succeeded, and after one that failed. */
export interface Pauses {
  afterLook: number;
  afterFailure: number;
}

/**
 * Calls `look` again and again until it is stopped, with a pause after each call. `what` names in the log what is
 * looked for.
 */
export function keepLooking(
  log: Pick<RoundLog, 'debug'>,
  what: string,
  { afterLook, afterFailure }: Pauses,
  look: (signal: AbortSignal) => Promise<void>,
): Looking {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const pause = await look(signal).then(
        () => afterLook,
        (error: unknown) => {
          log.debug({ err: error }, `${what} could not be looked for`);
          return afterFailure;
        },
      );
      await wait(pause, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Work that is done again and again beside everything else, such as the removal of old rows. */
export interface Rounds {
  /** Begins the first round. */
  start(): void;
  /** Begins no further round. Resolves once the current round has ended. */
  stop(): Promise<void>;
}

/**
 * Makes the rounds of a piece of work. The first round begins with `start`, and each further one `everyMs` milliseconds
 * after the end of the one before. `what` names the work in the log.
 */
export function createRounds(
  log: RoundLog,
  what: string,
  everyMs: number,
  round: (signal: AbortSignal) => Promise<void>,
): Rounds {
  let running: Looking | undefined;
  const guarded = (signal: AbortSignal): Promise<void> =>
    round(signal).catch((error: unknown) => log.warn({ err: error }, `${what} failed; tried again later`));
  return {
    start: () => {
      running = keepLooking(log, what, { afterLook: everyMs, afterFailure: everyMs }, guarded);
    },
    stop: async () => running?.stop(),
  };
}
