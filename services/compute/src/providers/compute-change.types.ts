import type { ComputeReason } from './compute-reason.types';

/** A machine as it is ordered. */
export interface MachineOrder {
  /** Our id of the server: its name at the provider. */
  name: string;
  /** Size by the provider's word: a Hetzner server type, a size of the Proxmox target's configuration. */
  spec: string;
  /** By the provider's word: a Hetzner image, a template of the Proxmox target's configuration. */
  image: string;
  /** By the provider's word: a Hetzner location, a Proxmox node. */
  zone: string;
  /** Kept at the machine where the provider has a place for it; keys and values of `[A-Za-z0-9._-]`, at most 63 characters. */
  labels: Readonly<Record<string, string>>;
}

interface PowerCut {
  isForced: boolean;
  /** How long a guest that is asked to shut down gets for it. A provider that does not wait for it ends its action at once, and the machine is looked at. */
  guestSeconds: number;
}

/** `reference` is the workflow's id; it goes along where the provider has a place for it. */
export type Change = { reference: string } & (
  | { kind: 'create'; order: MachineOrder }
  /** After `create` has ended: sized as ordered and started. Harmless when it is already. */
  | { kind: 'start'; machineId: string; order: MachineOrder }
  /** Powered on as it is. Harmless when it runs. */
  | { kind: 'power_on'; machineId: string }
  /** Its guest is asked to shut down, or its power cut. Harmless when it is off. */
  | ({ kind: 'power_off'; machineId: string } & PowerCut)
  /** Restarts a machine that runs: its guest is asked to, or its power is cut and given back. */
  | ({ kind: 'reboot'; machineId: string } & PowerCut)
  /**
   * The machine that carries this name, our id of the server: providers give numbers out a second time, and another one's is never deleted (`foreign`). One that
   * is not there is no error. Its snapshots stay where the provider keeps them apart (Hetzner), and go where not.
   */
  | { kind: 'delete'; machineId: string; name: string }
  | { kind: 'take_snapshot'; machineId: string; description: string }
  /** A snapshot that is not there is no error. */
  | { kind: 'delete_snapshot'; machineId: string; snapshotId: string }
  /** The machine's disks become the snapshot's; it is stopped for it. Whether it runs afterwards: on Hetzner yes, else if it ran at `prepare`, or was lost and not yet started again. */
  | { kind: 'rollback'; machineId: string; snapshotId: string }
  /** The machine's disks become the image's. Needs `compute:rebuild`. */
  | { kind: 'rebuild'; machineId: string; image: string }
);

/**
 * The state that `prepare` saw, in the driver's own format. It is kept as a step's output and handed back to the
 * driver.
 */
export type Checkpoint = string;

/** A change that the provider has taken on. */
export interface Accepted {
  /** Null when it is already done. */
  actionId: string | null;
  machineId: string;
  /** The snapshot that `take_snapshot` makes, which may still be creating; null for every other change. */
  snapshotId: string | null;
}

/** A piece of the provider's work. It never goes back from an end to running. */
export interface ProviderAction {
  id: string;
  /** The provider's word, for the log. */
  command: string;
  state: 'running' | 'succeeded' | 'failed';
  /** 0 to 100; null when the provider does not tell. */
  progress: number | null;
  /** Why it failed. */
  failure: { reason: ComputeReason; internal: string } | null;
}
