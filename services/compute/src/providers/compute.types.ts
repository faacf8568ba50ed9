/**
 * Every reason for a provider's refusal, independent of the provider. After `locked`, `conflict`, `rate_limited` and
 * `unavailable` the same call may be tried later. The others are final, except for `ambiguous`, after which the
 * driver's `find` is called.
 */
export type ComputeReason =
  /** Another action holds the machine (423). Transient. */
  | 'locked'
  /** Another client changed the machine at the same time (409). Transient. */
  | 'conflict'
  /** Our rate budget or the provider's is used up; `retryAfterSeconds` says for how long. Transient. */
  | 'rate_limited'
  /** No answer, or none that can be read, and nothing was accepted. Transient. */
  | 'unavailable'
  /**
   * A change was sent and its answer lost or unreadable: it may have been accepted. Look for it, and never send it
   * again.
   */
  | 'ambiguous'
  /** Final: the machine does not exist (any more). */
  | 'machine_not_found'
  | 'snapshot_not_found'
  | 'action_not_found'
  /** Final: image, size or zone of an order are not offered. */
  | 'order_refused'
  | 'snapshot_not_ready'
  | 'newer_snapshots'
  /** Final: only a machine that runs is restarted. */
  | 'not_running'
  /** Final: the guest did not shut down when it was asked to. The machine runs as before. */
  | 'guest_unresponsive'
  /** Final: the architecture or the size of the disk does not fit. */
  | 'incompatible'
  /** Final until staff lift the protection. */
  | 'protected'
  /** The driver has no such change. */
  | 'unsupported'
  /** The provider answered about another machine or action. */
  | 'foreign'
  /** 401, 403: our credential. Page staff. */
  | 'credentials_refused'
  /** Any other definite refusal, including one that our own mistake causes. It pages staff. */
  | 'rejected';

export type PowerState = 'unknown' | 'on' | 'off' | 'starting' | 'stopping' | 'rebooting';

/** A machine as its provider describes it. Facts that the provider does not state are null or empty. */
export interface Machine {
  id: string;
  /** The name that was ordered, which is our id of the server. */
  name: string;
  /** The provider's own word, verbatim; for staff. */
  vendorStatus: string;
  powerState: PowerState;
  /** Public addresses; empty if not stated. An IPv6 network is in CIDR notation, as the provider gives it. */
  addresses: readonly string[];
  /**
   * Whether an action locks the machine, perhaps one that the provider does not show. No change is accepted while it
   * does.
   */
  isLocked: boolean;
  /** A rollback or rebuild would be refused until staff lift the protection. */
  isRebuildProtected: boolean;
  /**
   * A deletion would be refused until staff lift the protection. False if the provider was not asked, as in listings.
   */
  isDeleteProtected: boolean;
  spec: string | null;
  zone: string | null;
  /** Name of the image that the machine was last built from. */
  image: string | null;
  /** `x86` or `arm`. */
  architecture: string | null;
  /** GB of 10^9 bytes. */
  diskGb: number | null;
}

export interface MachineSnapshot {
  id: string;
  description: string;
  /** Only an `available` snapshot can be rolled back to. */
  status: 'creating' | 'available' | 'unavailable';
  createdAt: Date;
  /** GB of 10^9 bytes; null while it is unknown. */
  sizeGb: number | null;
  /** The architecture of the machine; null if the image cannot differ from it. */
  architecture: string | null;
  /** The smallest disk it fits on, in GB; null if it cannot differ from the machine's. */
  diskGb: number | null;
  /**
   * Snapshots that would have to be deleted first, because the provider can only return to the newest one (ZFS and the
   * like). Otherwise empty.
   */
  newerIds: readonly string[];
  /** Deletion would be refused until staff lift the protection. */
  isDeleteProtected: boolean;
}

/** A machine as it is ordered. */
export interface MachineOrder {
  /** Our id of the server, which is its name at the provider. */
  name: string;
  /** The size, as the provider names it: a Hetzner server type, or a size of the Proxmox target's configuration. */
  spec: string;
  /** The provider's name for the image: a Hetzner image, or a template of the Proxmox target's configuration. */
  image: string;
  /** The provider's name for the place: a Hetzner location, or a Proxmox node. */
  zone: string;
  /**
   * Labels that are stored with the machine if the provider can. Keys and values are `[A-Za-z0-9._-]`, at most 63
   * characters.
   */
  labels: Readonly<Record<string, string>>;
}

interface PowerCut {
  isForced: boolean;
  /**
   * Seconds that a guest has to shut down after it is asked. If a provider does not wait, its action ends at once, and
   * the machine itself is watched.
   */
  guestSeconds: number;
}

/** `reference` is the workflow's id; it is sent along if the provider can store it. */
export type Change = { reference: string } & (
  | { kind: 'create'; order: MachineOrder }
  /**
   * Used after `create` has ended: resizes the machine as ordered and starts it. Does nothing if that is done already.
   */
  | { kind: 'start'; machineId: string; order: MachineOrder }
  /** Powers the machine on as it is. Does nothing if it runs. */
  | { kind: 'power_on'; machineId: string }
  /** Asks the guest to shut down, or cuts the power. Does nothing if the machine is off. */
  | ({ kind: 'power_off'; machineId: string } & PowerCut)
  /** Restarts a running machine, by asking its guest, or by cutting the power and giving it back. */
  | ({ kind: 'reboot'; machineId: string } & PowerCut)
  /**
   * Deletes the machine that has this name, our id of the server. Providers use numbers again, and another server's
   * machine is never deleted (`foreign`). A machine that is not there is no error. Its snapshots stay if the provider
   * keeps them apart (Hetzner), and otherwise go with it.
   */
  | { kind: 'delete'; machineId: string; name: string }
  | { kind: 'take_snapshot'; machineId: string; description: string }
  /** A snapshot that is not there is no error. */
  | { kind: 'delete_snapshot'; machineId: string; snapshotId: string }
  /**
   * Overwrites the machine's disks with the snapshot; the machine is stopped for it. Afterwards it runs on Hetzner, and
   * elsewhere if it ran at `prepare`, or was lost and not yet started again.
   */
  | { kind: 'rollback'; machineId: string; snapshotId: string }
  /** Overwrites the machine's disks with the image. Needs `compute:rebuild`. */
  | { kind: 'rebuild'; machineId: string; image: string }
);

/**
 * The state that `prepare` saw, in the driver's own format. It is kept as a step's output and handed back to the
 * driver.
 */
export type Checkpoint = string;

/** A change that the provider has accepted. */
export interface Accepted {
  /** The id of the action; null when the change is already done. */
  actionId: string | null;
  machineId: string;
  /** The snapshot that `take_snapshot` makes, which may still be creating; null for every other change. */
  snapshotId: string | null;
}

/** A piece of the provider's work. Its state does not change after the end. */
export interface ProviderAction {
  id: string;
  /** The provider's name of the work, for the log. */
  command: string;
  state: 'running' | 'succeeded' | 'failed';
  /** 0 to 100; null if the provider does not report it. */
  progress: number | null;
  /** The reason of the failure. */
  failure: { reason: ComputeReason; internal: string } | null;
}
