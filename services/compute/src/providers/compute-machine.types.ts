export type PowerState = 'unknown' | 'on' | 'off' | 'starting' | 'stopping' | 'rebooting';

/** A machine as its provider knows it. What the provider does not state is null or empty. */
export interface Machine {
  id: string;
  /** As ordered: our id of the server. */
  name: string;
  /** The provider's own word, verbatim; for staff. */
  vendorStatus: string;
  powerState: PowerState;
  /** Public addresses; empty means not stated. An IPv6 network is given in CIDR as the provider does. */
  addresses: readonly string[];
  /** An action holds it, hidden ones included: no change is accepted now. */
  isLocked: boolean;
  /** A rollback or rebuild would be refused until staff lift the protection. */
  isRebuildProtected: boolean;
  /** A deletion would be refused until staff lift the protection. False where nobody asked the provider for it: in listings. */
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
  /** Null where it cannot differ from the machine's. */
  architecture: string | null;
  /** The smallest disk it fits on, in GB; null where it cannot differ from the machine's. */
  diskGb: number | null;
  /** Snapshots that would have to be deleted first, since the provider can only return to the newest (ZFS and the like). Else empty. */
  newerIds: readonly string[];
  /** Deletion would be refused until staff lift the protection. */
  isDeleteProtected: boolean;
}
