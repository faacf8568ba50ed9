/** Every so many seconds counted from `anchorAt`, or daily at `HH:MM` UTC. */
export type Rhythm = { intervalSeconds: number; anchorAt: Date } | { dailyAt: string };

/** The first time after `now`. However many were missed, they are one run. */
export function nextRunAt(rhythm: Rhythm, now: Date): Date {
  if ('intervalSeconds' in rhythm) {
    const stepMs = rhythm.intervalSeconds * 1_000;
    const passed = Math.floor((now.getTime() - rhythm.anchorAt.getTime()) / stepMs);
    return new Date(rhythm.anchorAt.getTime() + (passed + 1) * stepMs);
  }
  const [hours, minutes] = rhythm.dailyAt.split(':').map(Number);
  const next = new Date(now);
  next.setUTCHours(hours ?? 0, minutes ?? 0, 0, 0);
  if (next <= now) next.setUTCDate(next.getUTCDate() + 1);
  return next;
}
