import type { Clock } from '../protocol/clock';
import type { Caller } from './authenticate';
import type { BucketStore, Buckets, Uploads } from './bucket-store';
import type { LockAnswer } from './object-lock';
import type { S3Call, S3Reply } from './s3-call';

export interface S3World {
  clock: Clock;
  region: string;
  buckets: Buckets;
  uploadsOf(bucket: string): Uploads;
  lockAnswer: LockAnswer;
  /** Records a change: the operation, the bucket, the key, and the version. */
  record(caller: Caller, change: { op: string; bucket: string; key: string; id: string; detail?: string }): void;
}

/** A call to a bucket that exists and that the caller may see. */
export interface BucketCall {
  world: S3World;
  call: S3Call;
  caller: Caller;
  bucket: BucketStore;
}

export type Answer = (call: BucketCall) => S3Reply | Promise<S3Reply>;

export const isoNow = ({ clock }: S3World): string => new Date(clock.now()).toISOString();
