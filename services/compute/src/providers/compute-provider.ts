import type { Mode } from '@drydock/contracts/platform/values';
import { checkDeletion, checkPower, checkRollback, type PowerKind } from './change.rules';
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

/** A provider's refusal or failure. `message` is for the log only, because it may contain text of the provider. */
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

  /** True if the provider has accepted nothing and the same call may succeed later. */
  get mayPass(): boolean {
    return passing.includes(this.reason);
  }
}

/**
 * The reading part of a provider, for handlers. One instance stands for one account (project, cluster) of one deploy
 * target in one mode. Ids are the provider's own. Every rejection is a ComputeError, except after an abort of `signal`.
 * A transient failure of a read is `unavailable` or `rate_limited`, never `ambiguous`. Each call to the provider takes
 * at most the driver's deadline (10 s unless configured).
 */
export interface ComputeReader {
  /** Drydock's name for the provider, such as `hetzner`. */
  readonly provider: string;
  /**
   * The capabilities that the API shows, such as `compute:snapshots` and `compute:rebuild`. A change without its
   * capability rejects with `unsupported`.
   */
  readonly capabilities: readonly string[];
  /**
   * Whether a rollback or rebuild of a machine without SSH keys sets a new root password. Only the provider's answer
   * contains the password, and drivers do not keep it.
   */
  readonly changesRootPassword?: boolean;
  /** The machine; null if the provider does not have it (any more). */
  readMachine(machineId: string, signal?: AbortSignal): Promise<Machine | null>;
  /** The machine that was ordered under this name; null if there is none. */
  findMachine(name: string, signal?: AbortSignal): Promise<Machine | null>;
  /**
   * All machines of the account. A listing may miss a machine for a moment, so a machine has vanished only if
   * `readMachine` does not find it either.
   */
  listMachines(signal?: AbortSignal): Promise<readonly Machine[]>;
  /**
   * The snapshots of this machine, newest first. The list is also empty if the machine is gone. `readMachine` tells
   * whether the machine exists.
   */
  listSnapshots(machineId: string, signal?: AbortSignal): Promise<readonly MachineSnapshot[]>;
  /** The snapshot with this id; null if there is none or if it belongs to another machine. */
  readSnapshot(machineId: string, snapshotId: string, signal?: AbortSignal): Promise<MachineSnapshot | null>;
  /** The action that locks the machine now; null if there is none or if the provider hides it. */
  readRunningAction(machineId: string, signal?: AbortSignal): Promise<ProviderAction | null>;
  /**
   * The checkpoint that `prepare` would return, for a rollback, rebuild or power change that is about to be accepted;
   * see `readEarlyCheckpoint`. Null if `find` recognises the change by its reference, or if the reader's account may
   * see less than the driver's.
   */
  prepareEarly(machineId: string, signal?: AbortSignal): Promise<Checkpoint | null>;
  /**
   * Reads the state of an action. Rejects with `foreign` if the provider answers about another action or another
   * machine, and with `action_not_found` if it has forgotten the action.
   */
  readAction(machineId: string, actionId: string, signal?: AbortSignal): Promise<ProviderAction>;
}

/**
 * The whole provider, for workflow steps. No remote provider takes an idempotency key, so a change that must not be
 * sent twice is made by these calls:
 * 1. `prepare` returns the state before the change. It changes nothing and may be repeated until the first `send`. The
 *    workflow stores the result before anything is sent.
 * 2. `find` returns the oldest matching work that was begun since `prepare`, however it ended. It is called before each
 *    `send`, because an earlier run of the step may have sent, and after a `send` that rejected with `ambiguous`. If
 *    `find` returns null for longer than `lostAnswerSeconds` after the send, the provider never got the change.
 * 3. `send` sends once, and never repeats a call that may have been accepted. If `send` rejects with any reason but
 *    `ambiguous`, the change was not accepted and `send` may be called again.
 * 4. `readAction` is called until the action ends.
 */
export interface ComputeDriver extends ComputeReader {
  /** How long an accepted call may stay invisible to `find`. */
  readonly lostAnswerSeconds: number;
  /**
   * Whether the provider recognises a change by its reference. Such a provider accepts a change once, however often it
   * is sent.
   */
  readonly recognisesRepeats?: boolean;
  prepare(change: Change, signal?: AbortSignal): Promise<Checkpoint>;
  send(change: Change, checkpoint: Checkpoint, signal?: AbortSignal): Promise<Accepted>;
  find(change: Change, checkpoint: Checkpoint, signal?: AbortSignal): Promise<Accepted | null>;
}

/**
 * Checks once more whether the rollback is allowed. Every driver calls this function just before the send, because a
 * rollback cannot be undone.
 *
 * @throws ComputeError with the reason why the change is not allowed now, or with the failure of a read
 */
export async function assertRollbackAllowed(
  reader: ComputeReader,
  { machineId, snapshotId }: { machineId: string; snapshotId: string },
  signal?: AbortSignal,
): Promise<void> {
  const [machine, snapshot] = await Promise.all([
    reader.readMachine(machineId, signal),
    reader.readSnapshot(machineId, snapshotId, signal),
  ]);
  if (machine === null) throw new ComputeError('machine_not_found', `no machine ${machineId}`);
  if (snapshot === null)
    throw new ComputeError('snapshot_not_found', `machine ${machineId} has no snapshot ${snapshotId}`);
  const reason = checkRollback(machine, snapshot);
  if (reason !== null) throw new ComputeError(reason, `rollback of ${machineId} to ${snapshotId} is not allowed now`);
}

/**
 * Checks once more whether the power may be changed, and resolves with the machine. Every driver calls this function
 * just before the send.
 *
 * @throws ComputeError with the reason why the change is not allowed now, or with the failure of a read
 */
export async function assertPowerAllowed(
  reader: ComputeReader,
  { machineId, kind }: { machineId: string; kind: PowerKind },
  signal?: AbortSignal,
): Promise<Machine> {
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) throw new ComputeError('machine_not_found', `no machine ${machineId}`);
  const reason = checkPower(machine, kind);
  if (reason !== null) throw new ComputeError(reason, `${kind} of ${machineId} is not allowed now`);
  return machine;
}

/**
 * Checks once more whether the machine may be deleted. Every driver calls this function just before the send. Resolves
 * with the machine, or with null if the machine does not exist (any more).
 *
 * @throws ComputeError with the reason why the change is not allowed now, or with the failure of a read
 */
export async function assertDeletionAllowed(
  reader: ComputeReader,
  { machineId, name }: { machineId: string; name: string },
  signal?: AbortSignal,
): Promise<Machine | null> {
  const machine = await reader.readMachine(machineId, signal);
  if (machine === null) return null;
  const reason = checkDeletion(machine, name);
  if (reason !== null)
    throw new ComputeError(
      reason,
      `deletion of ${machineId} is not allowed now: it is ${machine.name}, wanted is ${name}`,
    );
  return machine;
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

/** The sizes, prices and plans that can be ordered from a target. */
export interface Offer {
  currency: string;
  prices: ReadonlyMap<string, Price>;
  /** The sizes, by the code of the plan. */
  plans: ReadonlyMap<string, string>;
}

/** A deploy target in one mode. */
export interface Target<Provider> {
  provider: Provider;
  offer: Offer;
}

/** The targets by mode and deploy target. Sandbox and live never share a target, even under the same name. */
export type Targets<Provider> = Readonly<Record<Mode, ReadonlyMap<string, Target<Provider>>>>;

interface Located {
  mode: Mode;
  deployTarget: string;
}

/** Undefined if no target of that name is configured (any more). */
export const targetOf = <Provider>(
  targets: Targets<Provider>,
  { mode, deployTarget }: Located,
): Target<Provider> | undefined => targets[mode].get(deployTarget);
