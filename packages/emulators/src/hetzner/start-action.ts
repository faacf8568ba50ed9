import { goesUnheard } from './advance-actions';
import { refused } from './hetzner-errors';
import type { Action, Image, Server } from './hetzner-state';
import { type HetznerWorld, isLocked } from './hetzner-world';

/**
 * Labels of a server with which a user of the sandbox orders failures: the command that fails, and how much longer the
 * server's actions take.
 */
export const failLabel = 'emulator.fail';
export const slowLabel = 'emulator.slow-seconds';

/** A command without an entry takes a second. */
const secondsOf = (world: HetznerWorld, command: string, server: Server): number =>
  (world.actionSeconds[command] ?? 1) + Number(server.labels[slowLabel] ?? 0);

/** Accepts a command and saves it. @throws Refusal 423 while another command holds the server */
export function startAction(
  world: HetznerWorld,
  server: Server,
  command: string,
  { image, disk, detail }: { image?: Image; disk?: Server['disk']; detail?: string } = {},
): Action {
  if (isLocked(world, server)) throw refused('locked', 'cannot perform operation because server is locked');
  const started = world.clock.now();
  const action: Action = {
    id: world.nextId(),
    project: server.project,
    command,
    status: 'running',
    started,
    endsAt: started + secondsOf(world, command, server) * 1_000,
    finished: null,
    serverId: server.id,
    imageId: image?.id ?? null,
    willFail: server.labels[failLabel] === command,
    disk: disk === undefined ? null : { ...disk },
    statusBefore: server.status,
  };
  world.state.actions.push(action);
  if (!goesUnheard(server, command)) server.status = statusDuring[command] ?? server.status;
  world.save({ action, detail: detail ?? (image === undefined ? '' : String(image.id)) });
  return action;
}

const statusDuring: Readonly<Record<string, Server['status']>> = {
  create_server: 'initializing',
  rebuild_server: 'rebuilding',
  delete_server: 'deleting',
  start_server: 'starting',
  reboot_server: 'starting',
  reset_server: 'starting',
  stop_server: 'stopping',
  shutdown_server: 'stopping',
};
