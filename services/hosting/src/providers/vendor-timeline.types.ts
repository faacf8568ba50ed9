import type { VendorScope } from '@drydock/contracts/hosting/vendor-snapshots';

/** A timeline of a package: of its website (id ''), of a database or of a mailbox. */
export interface VendorItemRef {
  scope: VendorScope;
  id: string;
}

export interface VendorPoint {
  /** Opaque. It is sent back exactly as it was listed. */
  handle: string;
  takenAt: Date;
  kind: 'automatic' | 'manual';
}

export interface VendorItem {
  id: string;
  name: string;
  isDead: boolean;
  isRestorable: boolean;
  isRunning: boolean;
  /** Newest first. */
  points: readonly VendorPoint[];
}

/** The timelines of a package, as the vendor lists them now. The flags are copied from the vendor's answer. */
export interface VendorListing {
  isAvailable: boolean;
  isPermitted: boolean;
  isPro: boolean;
  isAttached: boolean;
  canBackUp: boolean;
  hasDeadWeb: boolean;
  web: VendorItem | null;
  databases: readonly VendorItem[];
  mailboxes: readonly VendorItem[];
}

export interface VendorJob {
  id: string;
  kind: 'snapshot' | 'restore';
  status: 'running' | 'finished' | 'failed';
  /** The point to which a restore goes back; null for a snapshot. */
  handle: string | null;
  /** Whether a restore makes a mailbox beside the original. */
  isBeside: boolean;
}
