export interface SweepLoop {
  /** Sweeps as soon as the one under way is over. */
  wake(): void;
  wakeIn(ms: number): void;
  stop(): Promise<void>;
}

/** Runs `work` every `everyMs` and when woken. Never two at a time. `work` must not reject. */
export function loopSweeps(everyMs: number, work: () => Promise<void>): SweepLoop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let woken = false;
  let stopped = false;
  const once = async (): Promise<void> => {
    woken = false;
    await work();
    running = undefined;
    if (!stopped) timer = setTimeout(turn, woken ? 0 : everyMs);
  };
  const turn = (): void => {
    clearTimeout(timer);
    running ??= once();
  };
  const wake = (): void => {
    if (stopped) return;
    if (running === undefined) turn();
    else woken = true;
  };
  turn();
  return {
    wake,
    wakeIn: (ms) => {
      if (ms < everyMs) setTimeout(wake, Math.max(0, ms)).unref();
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
