import type { ComputeReason } from './compute-reason.types';

/** A machine as it is ordered. */
export interface MachineOrder {
  /** Our id of the server, which is its name at the provider. */
  name: string;
  /** The size, as the provider names it: a Hetzner server type, or a size of the Proxmox target's configuration. */
  spec: string;
  /** As the provider names it: a Hetzner image, or a template of the Proxmox target's configuration. */
  image: string;
  /** As the provider names it: a Hetzner location, or a Proxmox node. */
  zone: string;
  /** Stored with the machine if the provider can; keys and values of `[A-Za-z0-9._-]`, at most 63 characters. */
  labels: Readonly<Record<string, string>>;
}

interface PowerCut {
  isForced: boolean;
  /**
   * How long a guest gets to shut down when asked. If a provider does not wait, its action ends at once, and the
   * machine itself is watched.
   */
  guestSeconds: number;
}

/** `reference` is the workflow's id; it is sent along if the provider can store it. */
export type Change = { reference: string } & (
  | { kind: 'create'; order: MachineOrder }
  /** After `create` has ended: resizes the machine as ordered and starts it. Does nothing if that is done already. */
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
  /** Null when it is already done. */
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
  /** Why it failed. */
  failure: { reason: ComputeReason; internal: string } | null;
}
