import type { Clock } from '../protocol/clock';
import type { LedgerFile } from '../protocol/ledger';
import type { StateFile } from '../protocol/state-file';
import { settleActions } from './advance-actions';
import { systemImages } from './catalogue';
import { refused } from './hetzner-errors';
import type { Action, HetznerState, Image, Server } from './hetzner-state';

/** Seconds of the emulator's time that each command takes. */
export type ActionSeconds = Readonly<Record<string, number>>;

export interface HetznerWorld {
  readonly state: HetznerState;
  readonly clock: Clock;
  readonly actionSeconds: ActionSeconds;
  nextId(): number;
  /** Saves what was changed, together with the command that was accepted: first the state, then the ledger. */
  save(taken?: { action: Action; detail: string }): void;
  /** Ends everything that is over by now. */
  settle(): void;
}

export function openWorld(
  state: HetznerState,
  {
    clock,
    file,
    ledger,
    actionSeconds,
  }: { clock: Clock; file: StateFile<HetznerState>; ledger: LedgerFile; actionSeconds: ActionSeconds },
): HetznerWorld {
  const save: HetznerWorld['save'] = (taken) => {
    state.clock = clock.anchor;
    if (taken === undefined) return file.write(state);
    const { action, detail } = taken;
    const entry = {
      seq: (state.lastEntry?.seq ?? 0) + 1,
      time: new Date(action.started).toISOString(),
      project: action.project,
      resource: String(action.serverId),
      op: action.command,
      action_id: String(action.id),
      detail,
      fence: '0' as const,
      workflow_id: null,
      outcome: 'accepted' as const,
    };
    state.lastEntry = entry;
    file.write(state);
    ledger.append(entry);
  };
  return {
    state,
    clock,
    actionSeconds,
    nextId: () => {
      state.lastId += 1;
      return state.lastId;
    },
    save,
    settle: () => {
      if (settleActions(state, clock.now())) save();
    },
  };
}

/**
 * The server with this id in the caller's project. For a server of another project the answer is the same as for none.
 * @throws Refusal 404
 */
export function requireServer({ state }: HetznerWorld, project: string, id: string): Server {
  const server = state.servers.find((candidate) => candidate.project === project && String(candidate.id) === id);
  if (server === undefined) throw refused('not_found', `server with ID '${id}' not found`);
  return server;
}

export const imagesOf = ({ state }: HetznerWorld, project: string): Image[] => [
  ...systemImages,
  ...state.images.filter((image) => image.project === project),
];

/** @throws Refusal 404 */
export function requireImage(world: HetznerWorld, project: string, id: string): Image {
  const image = imagesOf(world, project).find((candidate) => String(candidate.id) === id);
  if (image === undefined) throw refused('not_found', `image with ID '${id}' not found`);
  return image;
}

export const runningActionOf = ({ state }: HetznerWorld, server: Server): Action | undefined =>
  state.actions.find((action) => action.serverId === server.id && action.status === 'running');

export const isLocked = (world: HetznerWorld, server: Server): boolean =>
  server.isHiddenLocked || runningActionOf(world, server) !== undefined;
