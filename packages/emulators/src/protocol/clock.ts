import { z } from 'zod';

/**
 * The anchor of a clock. At the real time `realMs` the clock showed `standInMs`. Since then it runs `scale` times as
 * fast as real time. State files of sandboxes contain the name `standInMs`, so it cannot change.
 */
export const clockAnchorSchema = z.strictObject({
  realMs: z.number(),
  standInMs: z.number(),
  scale: z.number().min(0),
});
export type ClockAnchor = z.infer<typeof clockAnchorSchema>;

export interface Clock {
  /** Returns milliseconds since 1970 in the emulator's time. */
  now(): number;
  readonly anchor: ClockAnchor;
  /**
   * Changes the speed, or advances the clock. The clock cannot go back, so that finished actions stay finished. A scale
   * of 0 stops the clock.
   */
  change(change: { scale?: number | undefined; advanceSeconds?: number | undefined }): void;
}

export const startOfClock = (scale: number): ClockAnchor => {
  const realMs = Date.now();
  return { realMs, standInMs: realMs, scale };
};

/**
 * A clock that tests speed up or advance, so that actions of minutes take no time. The emulator's state keeps the
 * clock's anchor, so the clock continues after a restart.
 */
export function openClock(anchor: ClockAnchor): Clock {
  let current = anchor;
  const now = (): number => current.standInMs + Math.max(0, Date.now() - current.realMs) * current.scale;
  return {
    now,
    get anchor() {
      return current;
    },
    change: ({ scale, advanceSeconds }) => {
      current = { realMs: Date.now(), standInMs: now() + (advanceSeconds ?? 0) * 1_000, scale: scale ?? current.scale };
    },
  };
}
