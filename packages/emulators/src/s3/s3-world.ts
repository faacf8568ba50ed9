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
  /** Writes a change to the ledger. */
  record(caller: Caller, change: { op: string; bucket: string; key: string; id: string; detail?: string }): void;
}

/** A call to an existing bucket that the caller can see. */
export interface BucketCall {
  world: S3World;
  call: S3Call;
  caller: Caller;
  bucket: BucketStore;
}

export type Answer = (call: BucketCall) => S3Reply | Promise<S3Reply>;

export const isoNow = ({ clock }: S3World): string => new Date(clock.now()).toISOString();
