import type { Clock } from '../protocol/clock';
import type { Caller } from './authenticate';
import type { Buckets } from './bucket-folders';
import type { BucketStore } from './bucket-store';
import type { Uploads } from './multipart-store';
import type { LockAnswer } from './object-lock';
import type { S3Call, S3Reply } from './s3-call';

export interface S3World {
  clock: Clock;
  region: string;
  buckets: Buckets;
  uploadsOf(bucket: string): Uploads;
  lockAnswer: LockAnswer;
  /** Something was changed: what, of which bucket and key, which version. */
  record(caller: Caller, change: { op: string; bucket: string; key: string; id: string; detail?: string }): void;
}

/** A call to a bucket that is there and is the caller's. */
export interface BucketCall {
  world: S3World;
  call: S3Call;
  caller: Caller;
  bucket: BucketStore;
}

export type Answer = (call: BucketCall) => S3Reply | Promise<S3Reply>;

export const isoNow = ({ clock }: S3World): string => new Date(clock.now()).toISOString();
