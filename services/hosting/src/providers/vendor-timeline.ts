import type { Mode } from '@drydock/contracts/platform/values';
import type { VendorItemRef, VendorJob, VendorListing } from './vendor-timeline.types';

export interface VendorPackage {
  packageId: string;
  /** The address of the package's site before its domain points to the vendor. */
  url: string;
}

export interface VendorRestore {
  item: VendorItemRef;
  /**
   * The name of the mailbox beside the original, without the prefix `temp-`. The restore overwrites an existing mailbox
   * with the prefix and this name. The name has an effect only with `isBeside`.
   */
  name: string;
  handle: string;
  /** Whether the restore makes a separate mailbox, whose name begins with `temp-`. */
  isBeside: boolean;
}

/** Reads from the vendor, for requests. Rejects with {@link VendorError}, after a failed read was repeated. */
export interface VendorTimelineReader {
  /** Null when the vendor knows no such package. */
  read(packageId: string, signal?: AbortSignal): Promise<VendorListing | null>;
}

/**
 * Changes a vendor's packages, for workflow steps. The vendor takes no idempotency key. So after a VendorError
 * `unknown`, a caller looks for the job of its request before it sends the request again.
 */
export interface VendorTimeline extends VendorTimelineReader {
  /**
   * The jobs of one timeline, oldest first. A job that the vendor reports twice is listed once. A final status wins
   * over `running`.
   */
  listJobs(packageId: string, item: VendorItemRef, signal?: AbortSignal): Promise<VendorJob[]>;
  takeSnapshot(packageId: string, item: VendorItemRef, signal?: AbortSignal): Promise<void>;
  restore(packageId: string, restore: VendorRestore, signal?: AbortSignal): Promise<void>;
  /**
   * Returns the package of `owner` for `domain`, and makes it if it does not exist. May be called again. VendorError
   * `refused` if another owner's package has the domain.
   */
  ensurePackage(owner: string, domain: string, signal?: AbortSignal): Promise<VendorPackage>;
  findPackage(owner: string, signal?: AbortSignal): Promise<VendorPackage | null>;
  /** Removes a package. A missing package is no error. VendorError `busy` while a job of the package runs. */
  removePackage(packageId: string, signal?: AbortSignal): Promise<void>;
  /** The HTTP status of the page at `url`, 0 without an answer. No redirect is followed. */
  probe(url: string, signal?: AbortSignal): Promise<number>;
}

export type VendorFault =
  /** The change was not begun, and the failure is transient. */
  | 'unavailable'
  /** The answer to a change was lost or makes no sense, so the change may have been made. */
  | 'unknown'
  /** The change was not begun, because another job runs or there were too many calls. */
  | 'busy'
  /** A permanent refusal. Nothing was begun. */
  | 'refused'
  | 'not_found'
  /** The vendor does not accept Drydock's key, so staff have to act. Nothing was begun. */
  | 'denied';

/** `message` is for the log, because no text of the vendor may reach a customer. */
export class VendorError extends Error {
  readonly fault: VendorFault;
  /** The seconds that the vendor asked to wait, within Drydock's own limits. */
  readonly retryAfterSeconds: number;

  constructor(fault: VendorFault, message: string, options: ErrorOptions & { retryAfterSeconds?: number } = {}) {
    super(`${fault}: ${message}`, options);
    this.name = 'VendorError';
    this.fault = fault;
    this.retryAfterSeconds = options.retryAfterSeconds ?? 2;
  }
}

/**
 * The vendor of each mode. A mode without a vendor in this installation is left out. The two modes never share an
 * account.
 */
export type VendorTimelineReaders = Readonly<Partial<Record<Mode, VendorTimelineReader>>>;
export type VendorTimelines = Readonly<Partial<Record<Mode, VendorTimeline>>>;

/** Throws if the mode has no vendor here, because its configuration was removed while work was running. */
export function timelineOf(timelines: VendorTimelines, mode: Mode): VendorTimeline {
  const timeline = timelines[mode];
  if (timeline === undefined) throw new Error(`no vendor is configured for ${mode} sites`);
  return timeline;
}
