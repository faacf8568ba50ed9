import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type BucketStore, createBucketFolder, openBucket } from './bucket-store';
import { refuse } from './s3-errors';
import type { BucketSettings } from './stored-version';

/** All buckets of an emulator, each a folder. */
export interface Buckets {
  names(): string[];
  /** @throws S3Refusal NoSuchBucket */
  get(name: string): BucketStore;
  /** @throws S3Refusal */
  create(settings: BucketSettings): void;
  /** @throws S3Refusal */
  remove(name: string): void;
  folderOf(name: string): string;
}

const nameForm = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

export function openBuckets(stateDir: string): Buckets {
  const root = path.join(stateDir, 'buckets');
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const folderOf = (name: string): string => path.join(root, name);
  const names = readdirSync(root).filter((name) => existsSync(path.join(root, name, 'bucket.json')));
  const open = new Map(names.map((name) => [name, openBucket(folderOf(name))]));
  const get = (name: string): BucketStore =>
    open.get(name) ?? refuse('NoSuchBucket', 'The specified bucket does not exist');
  return {
    names: () => [...open.keys()].sort(),
    get,
    create: (settings) => {
      if (!nameForm.test(settings.name)) refuse('InvalidBucketName', 'The specified bucket is not valid.');
      if (open.has(settings.name))
        refuse(
          'BucketAlreadyOwnedByYou',
          'Your previous request to create the named bucket succeeded and you already own it.',
        );
      createBucketFolder(folderOf(settings.name), settings);
      open.set(settings.name, openBucket(folderOf(settings.name)));
    },
    remove: (name) => {
      if (!get(name).isEmpty()) refuse('BucketNotEmpty', 'The bucket you tried to delete is not empty');
      open.delete(name);
      rmSync(folderOf(name), { recursive: true, force: true });
    },
    folderOf,
  };
}
