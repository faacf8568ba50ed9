/**
 * The calls that a project may make: a store of `perHour` calls, which fills up again within an hour of the emulator's
 * time.
 */
export interface RateLimit {
  /**
   * Takes one call from the store, if there is one. The headers are those that the provider sends. Reset says in real
   * time when the store is full again.
   */
  take(project: string): { isAllowed: boolean; headers: Record<string, string> };
  /** The most calls in any one hour so far that were not refused. */
  peakPerHour(project: string): number;
  setPerHour(perHour: number): void;
}

const hourMs = 3_600_000;

export function createRateLimit(
  perHourAtFirst: number,
  clock: { now(): number; readonly anchor: { scale: number } },
): RateLimit {
  let perHour = perHourAtFirst;
  const projects = new Map<string, { left: number; at: number; passed: number[]; peak: number }>();
  const storeOf = (project: string) => {
    const store = projects.get(project) ?? { left: perHour, at: clock.now(), passed: [], peak: 0 };
    projects.set(project, store);
    return store;
  };
  return {
    take: (project) => {
      const now = clock.now();
      const store = storeOf(project);
      store.left = Math.min(perHour, store.left + ((now - store.at) * perHour) / hourMs);
      store.at = now;
      const isAllowed = store.left >= 1;
      if (isAllowed) {
        store.left -= 1;
        store.passed = [...store.passed.filter((at) => at > now - hourMs), now];
        store.peak = Math.max(store.peak, store.passed.length);
      }
      const untilFullMs = (((perHour - store.left) / perHour) * hourMs) / Math.max(clock.anchor.scale, 0.001);
      return {
        isAllowed,
        headers: {
          'ratelimit-limit': String(perHour),
          'ratelimit-remaining': String(Math.floor(store.left)),
          'ratelimit-reset': String(Math.ceil((Date.now() + untilFullMs) / 1_000)),
        },
      };
    },
    peakPerHour: (project) => projects.get(project)?.peak ?? 0,
    setPerHour: (next) => {
      perHour = next;
      projects.clear();
    },
  };
}
