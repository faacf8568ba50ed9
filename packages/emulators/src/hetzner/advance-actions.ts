import type { Action, HetznerState, Server } from './hetzner-state';

/**
 * The guest of such a server ignores a request to shut down or restart. The action succeeds, as at the real provider,
 * but has no effect.
 */
const deafLabel = 'emulator.deaf';
const asksTheGuest = (command: string): boolean => command === 'shutdown_server' || command === 'reboot_server';
export const goesUnheard = ({ labels }: Server, command: string): boolean =>
  deafLabel in labels && asksTheGuest(command);

/** Ends, in order, everything that is over by `now`. Says whether anything changed. */
export function settleActions(state: HetznerState, now: number): boolean {
  const over = state.actions.filter(({ status, endsAt }) => status === 'running' && endsAt <= now);
  for (const action of over.sort((one, other) => one.endsAt - other.endsAt)) endAction(state, action);
  return over.length > 0;
}

function endAction(state: HetznerState, action: Action): void {
  action.status = action.willFail ? 'error' : 'success';
  action.finished = action.endsAt;
  endImage(state, action);
  const server = state.servers.find(({ id }) => id === action.serverId);
  if (server === undefined) return;
  if (action.willFail) {
    server.status = action.statusBefore === 'initializing' ? 'off' : action.statusBefore;
    return;
  }
  if (action.disk !== null && action.command !== 'create_image') server.disk = { ...action.disk };
  if (action.command === 'rebuild_server') server.imageId = action.imageId;
  if (action.command === 'delete_server') {
    state.servers = state.servers.filter(({ id }) => id !== server.id);
    // Backups are removed with their server, but snapshots stay.
    state.images = state.images.filter(({ boundTo }) => boundTo !== server.id);
  }
  if (!goesUnheard(server, action.command)) server.status = statusAfter[action.command] ?? server.status;
}

const statusAfter: Readonly<Record<string, 'running' | 'off'>> = {
  create_server: 'running',
  rebuild_server: 'running',
  start_server: 'running',
  reboot_server: 'running',
  reset_server: 'running',
  stop_server: 'off',
  shutdown_server: 'off',
};

function endImage(state: HetznerState, action: Action): void {
  if (action.command !== 'create_image') return;
  const image = state.images.find(({ id }) => id === action.imageId);
  if (image === undefined) return;
  image.status = action.willFail ? 'unavailable' : 'available';
  image.imageSize = action.willFail ? null : 1.2;
}
