import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../telemetry/log';

export interface Looking {
  /** Resolves once the current look has ended. */
  stop(): Promise<void>;
}

/** The pauses in milliseconds after a look that succeeded, and after one that failed. */
export interface Pauses {
  afterLook: number;
  afterFailure: number;
}

/** Looks again and again until it is stopped. `what` is what is looked for, for the log. */
export function keepLooking(
  log: Log,
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
