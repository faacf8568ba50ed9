/** Seconds of the emulator's time that each type of task takes. */
export type TaskSeconds = Readonly<Record<string, number>>;

/**
 * How many seconds each type of task takes: about as long as on a small cluster. A type that is missing takes one
 * second.
 */
export const usualTaskSeconds: TaskSeconds = {
  qmclone: 8,
  qmstart: 2,
  qmstop: 1,
  qmshutdown: 3,
  qmreboot: 3,
  qmreset: 1,
  qmsnapshot: 4,
  qmdelsnapshot: 2,
  qmrollback: 10,
  qmdestroy: 2,
};

/** Shorter tasks for a demonstration, in which the emulator's time must equal real time. */
export const fasterTasks = (speed: number): TaskSeconds =>
  Object.fromEntries(Object.entries(usualTaskSeconds).map(([type, seconds]) => [type, seconds / speed]));
