import type { VendorScope } from '@drydock/contracts/hosting/vendor-snapshots';

/** One timeline of a package: the website's (id ''), a database's or a mailbox's. */
export interface VendorItemRef {
  scope: VendorScope;
  id: string;
}

export interface VendorPoint {
  /** An opaque handle, which is sent back exactly as it was listed. */
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

/** The vendor's current state of a package's timelines. Every flag is the vendor's own. */
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
  /** The point that a restore goes back to; null for a snapshot. */
  handle: string | null;
  /** Whether the restore makes a mailbox beside the original. */
  isBeside: boolean;
}
