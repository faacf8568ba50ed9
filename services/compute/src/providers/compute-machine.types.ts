export type PowerState = 'unknown' | 'on' | 'off' | 'starting' | 'stopping' | 'rebooting';

/** A machine as its provider describes it. Facts that the provider does not state are null or empty. */
export interface Machine {
  id: string;
  /** As ordered: our id of the server. */
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
  /** Name of the image it was last built from. */
  image: string | null;
  /** `x86` or `arm`. */
  architecture: string | null;
  /** GB of 10^9 bytes. */
  diskGb: number | null;
}

export interface MachineSnapshot {
  id: string;
  description: string;
  /** Only an `available` one can be rolled back to. */
  status: 'creating' | 'available' | 'unavailable';
  createdAt: Date;
  /** GB of 10^9 bytes; null while it is unknown. */
  sizeGb: number | null;
  /** Null if it cannot differ from the machine's. */
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
