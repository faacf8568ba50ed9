import type { Mode } from '@drydock/contracts/platform/values';
import type {
  Accepted,
  Change,
  Checkpoint,
  ComputeReason,
  Machine,
  MachineSnapshot,
  ProviderAction,
} from './compute.types';

const passing: readonly ComputeReason[] = ['locked', 'conflict', 'rate_limited', 'unavailable'];

/** `message` is for the log only, because it may contain text of the provider. */
export class ComputeError extends Error {
  readonly reason: ComputeReason;
  /** Seconds to wait after `rate_limited` and `unavailable`, if they are known; at least 1. */
  readonly retryAfterSeconds: number | null;

  constructor(reason: ComputeReason, message: string, options: ErrorOptions & { retryAfterSeconds?: number } = {}) {
    super(`${reason}: ${message}`, options);
    this.name = 'ComputeError';
    this.reason = reason;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
  }

  /** Whether the same call may be tried later: nothing was accepted. */
  get mayPass(): boolean {
    return passing.includes(this.reason);
  }
}

/**
 * The part for requests: it only reads. One instance stands for one account (project, cluster) of one deploy target in
 * one mode; an id of another account is not found. Ids are the provider's, opaque to us. Every rejection is a
 * ComputeError. A transient failure of a read is `unavailable` or `rate_limited`, never `ambiguous`, and has already
 * been repeated as often as makes sense. No answer takes longer than the driver's deadline (10 s a call unless
 * configured).
 */
export interface ComputeReader {
  /** The service's name for the provider, such as `hetzner`. */
  readonly provider: string;
  /**
   * Tokens of ComputeServer.capabilities, such as `compute:snapshots`, `compute:rebuild`. A change that is missing here
   * rejects with `unsupported`.
   */
  readonly capabilities: readonly string[];
  /** Null if the provider has no such machine (any more). */
  readMachine(machineId: string, signal?: AbortSignal): Promise<Machine | null>;
  /** The machine that carries the name given by its order; null when there is none. */
  findMachine(name: string, signal?: AbortSignal): Promise<Machine | null>;
  /**
   * All machines of the account, for reconciliation: far fewer calls than one each. A machine that is missing here has
   * vanished.
   */
  listMachines(signal?: AbortSignal): Promise<readonly Machine[]>;
  /**
   * The snapshots of this machine, newest first. Empty also if the machine is gone: call readMachine if that matters.
   */
  listSnapshots(machineId: string, signal?: AbortSignal): Promise<readonly MachineSnapshot[]>;
  /** Null if this machine has no snapshot with that id, also if another machine has one. */
  readSnapshot(machineId: string, snapshotId: string, signal?: AbortSignal): Promise<MachineSnapshot | null>;
  /** The action that locks the machine now, except for hidden ones; null if there is none. */
  readRunningAction(machineId: string, signal?: AbortSignal): Promise<ProviderAction | null>;
  /**
   * The checkpoint that `prepare` would return, for a rollback or rebuild that is about to be accepted. It is stored
   * with the accepted work, so that `find` recognises the change even if everything recorded later is lost. Null if
   * `find` needs none, or if a reader sees less than a driver.
   */
  prepareEarly(machineId: string, signal?: AbortSignal): Promise<Checkpoint | null>;
  /**
   * `foreign` when the provider answers with another action or another machine's, `action_not_found` when it has
   * forgotten it.
   */
  readAction(machineId: string, actionId: string, signal?: AbortSignal): Promise<ProviderAction>;
}

/**
 * The part for workflow steps. No remote provider takes an idempotency key, so each change is made in three calls, the
 * result of each checkpointed before the next:
 * 1. `prepare` remembers the state before the change. It changes nothing and may be repeated until the first `send`.
 * 2. `send` sends once, and never repeats a call that may have been accepted. If it rejects with any reason but
 * `ambiguous`, nothing was accepted and it may be called again.
 * 3. `find` returns the oldest work that was begun since `prepare`, however it ended. Call it after `ambiguous`, and
 * first of all in every step that sends, because the step cannot know whether an earlier run has sent. If it is null
 * for longer than `lostAnswerSeconds` after the send, the provider never got the change.
 * Then `readAction` until it ends.
 */
export interface ComputeDriver extends ComputeReader {
  /** How long an accepted call may stay invisible to `find`. */
  readonly lostAnswerSeconds: number;
  /**
   * Whether the provider recognises a change by its reference, so that it accepts the change once however often it is
   * sent.
   */
  readonly takesOnOnce?: boolean;
  prepare(change: Change, signal?: AbortSignal): Promise<Checkpoint>;
  send(change: Change, checkpoint: Checkpoint, signal?: AbortSignal): Promise<Accepted>;
  find(change: Change, checkpoint: Checkpoint, signal?: AbortSignal): Promise<Accepted | null>;
}

/** Closes connections when the process shuts down. */
export interface Closing {
  close(): Promise<void>;
}

/** The price of a size, in the currency's smallest unit. */
interface Price {
  hourMinor: number;
  monthMinor: number;
}

/** The sizes, prices and plans that can be ordered in a range. */
export interface Offer {
  currency: string;
  prices: ReadonlyMap<string, Price>;
  /** Sizes by the plan's code. */
  plans: ReadonlyMap<string, string>;
}

/**
 * A range of servers is what one mode has under one deploy target. It has a provider, which runs the machines, and an
 * offer of sizes, prices and plans.
 */
export interface Target<Provider> {
  provider: Provider;
  offer: Offer;
}

/**
 * The targets by mode and deploy target. A sandbox range and a live range are different ranges, even under the same
 * name.
 */
export type Targets<Provider> = Readonly<Record<Mode, ReadonlyMap<string, Target<Provider>>>>;

interface Located {
  mode: Mode;
  deployTarget: string;
}

/** Undefined when nothing of that name is configured (any more). */
export const targetOf = <Provider>(
  targets: Targets<Provider>,
  { mode, deployTarget }: Located,
): Target<Provider> | undefined => targets[mode].get(deployTarget);
