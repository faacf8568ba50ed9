import { z } from 'zod';

/**
 * From `realMs` on, the emulator's time runs `scale` times as fast as real time. It starts at `standInMs`; the name
 * comes from older state files.
 */
export const clockAnchorSchema = z.strictObject({
  realMs: z.number(),
  standInMs: z.number(),
  scale: z.number().min(0),
});
export type ClockAnchor = z.infer<typeof clockAnchorSchema>;

export interface Clock {
  /** Milliseconds since 1970, in the emulator's time. */
  now(): number;
  readonly anchor: ClockAnchor;
  /** The time never goes back, so what is done stays done. A scale of 0 stops it. */
  change(change: { scale?: number | undefined; advanceSeconds?: number | undefined }): void;
}

export const startOfClock = (scale: number): ClockAnchor => {
  const realMs = Date.now();
  return { realMs, standInMs: realMs, scale };
};

/**
 * A clock that tests make faster or move forward, so that a rollback of minutes takes them no time. Because of the
 * anchor it outlives its process.
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
