import type { IncomingMessage } from 'node:http';
import type { Clock } from '../protocol/clock';
import type { Caller } from './authenticate';
import type { BucketStore, Buckets, Uploads } from './bucket-store';
import type { LockAnswer } from './object-lock';

/** A request whose body is not read yet. */
export interface S3Call {
  method: string;
  /** The received path, still encoded. */
  rawPath: string;
  /** Empty in a call to the service itself, such as the listing of buckets. */
  bucket: string;
  /** Empty in a call to the bucket itself. */
  key: string;
  query: URLSearchParams;
  headers: Readonly<Record<string, string | undefined>>;
  request: IncomingMessage;
  requestId: string;
}

/** Parses a path-style request: `/bucket/key`. @throws URIError when the path is not UTF-8 */
export function parseCall(request: IncomingMessage, requestId: string): S3Call {
  const url = new URL(`http://s3${request.url ?? '/'}`);
  const rawPath = (request.url ?? '/').split('?', 1)[0] ?? '/';
  const [, bucket = '', ...rest] = rawPath.split('/');
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(',') : value]),
  );
  return {
    method: request.method ?? 'GET',
    rawPath,
    bucket: decodeURIComponent(bucket),
    key: decodeURIComponent(rest.join('/')),
    query: url.searchParams,
    headers,
    request,
    requestId,
  };
}

export type S3Body =
  | { kind: 'text'; text: string; contentType?: string }
  | { kind: 'empty' }
  | { kind: 'file'; stream: AsyncIterable<Buffer>; bytes: number };

export interface S3Reply {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: S3Body;
}

export const emptyAnswer = (status: number, headers: Readonly<Record<string, string>> = {}): S3Reply => ({
  status,
  headers,
  body: { kind: 'empty' },
});

export const xmlAnswer = (text: string, headers: Readonly<Record<string, string>> = {}): S3Reply => ({
  status: 200,
  headers,
  body: { kind: 'text', text },
});

/** The parts of the emulator that a call reads or changes. */
export interface S3World {
  clock: Clock;
  region: string;
  buckets: Buckets;
  uploadsOf(bucket: string): Uploads;
  lockAnswer: LockAnswer;
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
