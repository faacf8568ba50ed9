/**
 * Every reason for a provider's refusal, the same for all providers. After `locked`, `conflict`, `rate_limited` and
 * `unavailable` the same call may be tried later. After `ambiguous` the driver's `find` is called. All other reasons
 * are final.
 */
export type ComputeReason =
  /** Transient: another action locks the machine (423). */
  | 'locked'
  /** Transient: another client changed the machine at the same time (409). */
  | 'conflict'
  /** Transient: the rate limit is used up. `retryAfterSeconds` is the time until the next call may be sent. */
  | 'rate_limited'
  /** Transient: no readable answer came, and the provider has accepted nothing. */
  | 'unavailable'
  /**
   * A change was sent, and its answer was lost or cannot be read, so the change may have been accepted. The change is
   * searched for with `find`. Only a driver with `recognisesRepeats` may get it again.
   */
  | 'ambiguous'
  /** Final: the machine does not exist (any more). */
  | 'machine_not_found'
  | 'snapshot_not_found'
  | 'action_not_found'
  /** Final: the image, the size or the zone of an order is not offered. */
  | 'order_refused'
  | 'snapshot_not_ready'
  | 'newer_snapshots'
  /** Final: a machine that is off cannot be restarted. */
  | 'not_running'
  /** Final: the guest did not shut down when it was asked to. The machine runs as before. */
  | 'guest_unresponsive'
  /** Final: the architecture or the size of the disk does not fit. */
  | 'incompatible'
  /** Final until staff remove the protection. */
  | 'protected'
  /** Final: the driver does not support the change, or the machine has no guest agent that answers. */
  | 'unsupported'
  /** Final: the provider answered about another machine or action, or the machine to delete is another server's. */
  | 'foreign'
  /** Final: the provider refuses Drydock's credential (401, 403). A workflow step that meets it pages staff. */
  | 'credentials_refused'
  /** Final: any other refusal, such as that of a malformed request. The workflow step pages staff. */
  | 'rejected';

export type PowerState = 'unknown' | 'on' | 'off' | 'starting' | 'stopping' | 'rebooting';

/** A machine as its provider describes it. Facts that the provider does not state are null or empty. */
export interface Machine {
  id: string;
  /** The machine's name at the provider. A machine that Drydock ordered has its server's id as its name. */
  name: string;
  /** The status in the provider's own words, for staff. */
  vendorStatus: string;
  powerState: PowerState;
  /** Public addresses; empty if not stated. An IPv6 network is in CIDR notation, as the provider gives it. */
  addresses: readonly string[];
  /**
   * Whether an action locks the machine, even if the provider does not show the action. A locked machine accepts no
   * change.
   */
  isLocked: boolean;
  /** Whether a rollback or rebuild would be refused until staff remove the protection. */
  isRebuildProtected: boolean;
  /**
   * Whether a deletion would be refused until staff remove the protection. A Proxmox listing does not read the
   * protection and always says false.
   */
  isDeleteProtected: boolean;
  spec: string | null;
  zone: string | null;
  /** Name of the image that the machine was last built from. */
  image: string | null;
  /** The architecture, `x86` or `arm`. */
  architecture: string | null;
  /** The size of the disk in GB of 10^9 bytes. */
  diskGb: number | null;
}

export interface MachineSnapshot {
  id: string;
  description: string;
  /** Only an `available` snapshot can be restored by a rollback. */
  status: 'creating' | 'available' | 'unavailable';
  createdAt: Date;
  /** The size in GB of 10^9 bytes; null while it is unknown. */
  sizeGb: number | null;
  /**
   * The architecture of the machine that the snapshot was made from; null if it is always the architecture of this
   * machine.
   */
  architecture: string | null;
  /** The size in GB of the smallest disk that the snapshot fits on; null if it always fits on this machine's disk. */
  diskGb: number | null;
  /**
   * The snapshots that must be deleted before a rollback to this snapshot. Some storages, such as ZFS, can only return
   * to the newest snapshot. For all other storages the list is empty.
   */
  newerIds: readonly string[];
  /** Whether a deletion would be refused until staff remove the protection. */
  isDeleteProtected: boolean;
}

export interface MachineOrder {
  /** Drydock's id of the server, which is its name at the provider. */
  name: string;
  /**
   * The size, as the provider names it: a Hetzner server type, or a size in the configuration of a Proxmox or QEMU
   * target.
   */
  spec: string;
  /**
   * The provider's name for the image: a Hetzner image, or an image in the configuration of a Proxmox or QEMU target.
   */
  image: string;
  /** The provider's name for the location: a Hetzner location, a Proxmox node, or the zone of a QEMU target. */
  zone: string;
  /** Public keys of OpenSSH that may sign in as root. Needs `compute:ssh_keys` if there is any. */
  sshKeys?: readonly string[];
  /**
   * Labels that are stored with the machine, if the provider can store them. Keys and values consist of
   * `[A-Za-z0-9._-]` and have at most 63 characters.
   */
  labels: Readonly<Record<string, string>>;
}

interface PowerCut {
  isForced: boolean;
  /**
   * Seconds that a guest has to shut down after it was asked. If a provider does not wait for the guest, the action
   * ends at once, and the workflow watches the machine.
   */
  guestSeconds: number;
}

/** A change of a machine. `reference` is the workflow's id; it is sent along if the provider can store it. */
export type Change = { reference: string } & (
  | { kind: 'create'; order: MachineOrder }
  /**
   * Gives a created machine its ordered size and starts it. It is sent after `create` has ended. Does nothing if the
   * machine runs.
   */
  | { kind: 'start'; machineId: string; order: MachineOrder }
  /** Powers the machine on as it is. Does nothing if it runs. */
  | { kind: 'power_on'; machineId: string }
  /** Asks the guest to shut down, or cuts the power. Does nothing if the machine is off. */
  | ({ kind: 'power_off'; machineId: string } & PowerCut)
  /** Restarts a running machine: asks the guest, or cuts the power and turns it on again. */
  | ({ kind: 'reboot'; machineId: string } & PowerCut)
  /**
   * Deletes the machine if it has this name, which is Drydock's id of the server. Providers reuse numbers, so a machine
   * with another name belongs to another server and is refused (`foreign`). A missing machine is no error. The
   * machine's snapshots stay if the provider stores them separately (Hetzner), and otherwise are deleted with it.
   */
  | { kind: 'delete'; machineId: string; name: string }
  | { kind: 'take_snapshot'; machineId: string; description: string }
  /** Deletes the snapshot. A snapshot that does not exist is no error. */
  | { kind: 'delete_snapshot'; machineId: string; snapshotId: string }
  /**
   * Stops the machine and overwrites its disks with the snapshot. Afterwards a Hetzner machine runs. A Proxmox machine
   * runs if it ran at `prepare`. A QEMU machine runs if it was meant to run at `prepare`, even if it had crashed.
   */
  | { kind: 'rollback'; machineId: string; snapshotId: string }
  /** Overwrites the machine's disks with the image. Needs `compute:rebuild`. */
  | { kind: 'rebuild'; machineId: string; image: string }
);

/**
 * The state that `prepare` saw, in the driver's own format. The caller passes it to `send` and `find`, and stores it if
 * the change must not be sent twice.
 */
export type Checkpoint = string;

/** A change that the provider has accepted. */
export interface Accepted {
  /** The id of the action; null if the change is already done. */
  actionId: string | null;
  machineId: string;
  /** The snapshot that `take_snapshot` makes, which may still be incomplete; null for every other change. */
  snapshotId: string | null;
}

/** A piece of the provider's work. Its state stays the same once it has ended. */
export interface ProviderAction {
  id: string;
  /** The provider's name of the work, for the log. */
  command: string;
  state: 'running' | 'succeeded' | 'failed';
  /** The progress from 0 to 100; null if the provider does not report it. */
  progress: number | null;
  /** Null unless the action has failed. */
  failure: { reason: ComputeReason; internal: string } | null;
}
