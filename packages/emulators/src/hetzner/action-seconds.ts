import type { ActionSeconds } from './hetzner-world';

/**
 * How many seconds of the emulator's time each command takes: about as long as at the real provider. A command that is
 * missing takes one second.
 */
export const usualActionSeconds: ActionSeconds = {
  create_server: 8,
  rebuild_server: 12,
  create_image: 6,
  delete_server: 2,
  start_server: 2,
  stop_server: 1,
  shutdown_server: 3,
  reboot_server: 3,
  reset_server: 1,
};

/** Shorter actions for a demonstration, in which the emulator's time must equal real time. */
export const fasterActions = (speed: number): ActionSeconds =>
  Object.fromEntries(Object.entries(usualActionSeconds).map(([command, seconds]) => [command, seconds / speed]));
