import type { Mode } from '@drydock/contracts/platform/values';
import type { VendorItemRef, VendorJob, VendorListing } from './vendor-timeline.types';

export interface VendorPackage {
  packageId: string;
  /** The address of the site until its domain points to the vendor. */
  url: string;
}

export interface VendorRestore {
  item: VendorItemRef;
  /**
   * The name of the mailbox beside the original, without the prefix `temp-`. The vendor overwrites an existing mailbox
   * `temp-…` of this name. Used only with `isBeside`.
   */
  name: string;
  handle: string;
  /** Whether the restore makes a mailbox beside the original, whose name begins with `temp-`. */
  isBeside: boolean;
}

/** The access of request handlers, which only read. Calls reject with {@link VendorError}. */
export interface VendorTimelineReader {
  /** Null if the vendor knows no such package. */
  read(packageId: string, signal?: AbortSignal): Promise<VendorListing | null>;
}

/**
 * The access of workflow steps, which change packages. The vendor takes no idempotency key. So after VendorError
 * `unknown` the caller must not send the request again, but look for the job that came of it.
 */
export interface VendorTimeline extends VendorTimelineReader {
  /**
   * The jobs of one timeline, oldest first, each once even if the vendor reports it twice. A final status wins over
   * `running`.
   */
  listJobs(packageId: string, item: VendorItemRef, signal?: AbortSignal): Promise<VendorJob[]>;
  takeSnapshot(packageId: string, item: VendorItemRef, signal?: AbortSignal): Promise<void>;
  restore(packageId: string, restore: VendorRestore, signal?: AbortSignal): Promise<void>;
  /**
   * The package of `owner` for `domain`; makes it if there is none. A repeated call makes no second package.
   * VendorError `refused` if the domain has a package of another owner, and `busy` if the vendor makes no package at
   * the moment.
   */
  ensurePackage(owner: string, domain: string, signal?: AbortSignal): Promise<VendorPackage>;
  /**
   * The package of `owner`; null if there is none. `knownId` is the package's id in Drydock's record. If it is right,
   * the vendor need not list the whole account. A package of another owner is never found, even by `knownId`.
   */
  findPackage(owner: string, signal?: AbortSignal, knownId?: string | null): Promise<VendorPackage | null>;
  /** Removes a package. A missing package is no error. VendorError `busy` while a job of it runs. */
  removePackage(packageId: string, signal?: AbortSignal): Promise<void>;
  /** The HTTP status of the page at `url`; 0 without an answer. Follows no redirect. */
  probe(url: string, signal?: AbortSignal): Promise<number>;
}

export type VendorFault =
  /** Nothing was begun. Transient. */
  | 'unavailable'
  /** The answer to a read is too large or has an unknown shape, perhaps only for this package. */
  | 'not_understood'
  /** The answer to a change was lost or makes no sense, so the vendor may have carried it out. */
  | 'unknown'
  /** Nothing was begun, because another job runs or there were too many calls. */
  | 'busy'
  /** Nothing was begun. Permanent. */
  | 'refused'
  | 'not_found'
  /** Nothing was begun, because the vendor does not accept Drydock's key. Staff have to act. */
  | 'denied';

/** `message` is for the log: no text of the vendor reaches a customer. */
export class VendorError extends Error {
  readonly fault: VendorFault;
  /**
   * The seconds to wait before another call. They come from the vendor's Retry-After within limits, or else from
   * Drydock.
   */
  readonly retryAfterSeconds: number;
  /** Whether the vendor has answered 409: the call conflicts with something that exists. Only `busy` has it. */
  readonly isConflict: boolean;

  constructor(
    fault: VendorFault,
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number; isConflict?: boolean } = {},
  ) {
    super(`${fault}: ${message}`, options);
    this.name = 'VendorError';
    this.fault = fault;
    this.retryAfterSeconds = options.retryAfterSeconds ?? 2;
    this.isConflict = options.isConflict ?? false;
  }
}

/** The vendor of each mode that has one. The modes never share an account. */
export type VendorTimelineReaders = Readonly<Partial<Record<Mode, VendorTimelineReader>>>;
export type VendorTimelines = Readonly<Partial<Record<Mode, VendorTimeline>>>;

/** Throws if the vendor was taken out of the configuration while work was under way. */
export function timelineOf(timelines: VendorTimelines, mode: Mode): VendorTimeline {
  const timeline = timelines[mode];
  if (timeline === undefined) throw new Error(`no vendor is configured for ${mode} sites`);
  return timeline;
}
