import type { LostPart } from '../files/attributes';
import type { ArchiveReason } from '../format/archive-error';
import type { ByteString } from '../format/path-bytes';
import type { BlockTask } from '../read/check-tree';

/** The input of a worker for one extraction. */
export interface WorkerSetup {
  directory: string;
  root: string;
  archives: { salt: Uint8Array; archiveTag: Uint8Array; encryption: Uint8Array; authentication: Uint8Array }[];
  owner: Owner | null;
  /** The umask of the process. It is passed on, because a worker thread cannot read it. */
  umask: number;
}

export interface Owner {
  uid: number;
  gid: number;
}

/** A restored path that lacks a part which the archive has. */
export interface LostPath {
  path: ByteString;
  part: LostPart;
}

/** Every request gets exactly one answer with its id. */
export type WorkerRequest =
  | { id: number; want: 'task' }
  | { id: number; want: 'object'; archive: number; name: string };

export type WorkerMessage =
  | { type: 'request'; request: WorkerRequest }
  | { type: 'progress'; entries: number; rawBytes: number; lost: LostPath[] }
  | { type: 'finished' }
  | { type: 'failed'; reason: ArchiveReason; detail: string };

/**
 * The first message to an idle worker. Its last message is `finished` or `failed`. After `finished` it is idle again.
 */
export interface WorkerStart {
  start: WorkerSetup;
}

export type WorkerAnswer = { id: number; task: BlockTask | null } | { id: number; object: Uint8Array };
