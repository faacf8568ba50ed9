import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { ReceivedBody } from './receive-body';
import { refuse } from './s3-errors';
import {
  type BucketSettings,
  bucketSettingsSchema,
  checksumSchema,
  type Piece,
  retentionSchema,
  type StoredVersion,
  storedVersionSchema,
} from './stored-version';

/** A bucket on disk: a record for each version, and files with its content. All records are also in memory. */
export interface BucketStore {
  readonly settings: BucketSettings;
  change(settings: BucketSettings): void;
  /** The folder for received bodies that do not belong to an object yet. */
  readonly incoming: string;
  /** Returns the versions of a key, the newest first, or none. */
  versionsOf(key: string): readonly StoredVersion[];
  /** Returns the keys with this prefix, ordered by their bytes. */
  keys(prefix: string): string[];
  /** Adds a version and moves the files into the bucket. Without versioning, the new version replaces the old one. */
  add(version: NewVersion, files: readonly { file: string; bytes: number }[]): StoredVersion;
  replace(version: StoredVersion): void;
  remove(version: StoredVersion): void;
  fileOf(piece: Piece): string;
  isEmpty(): boolean;
}

type NewVersion = Omit<StoredVersion, 'versionId' | 'seq' | 'pieces' | 'bytes'>;

const newId = (): string => randomBytes(16).toString('hex');

/** Replaces a file in one step, so that a kill -9 leaves the old or the new content. */
function writeJson(file: string, value: unknown): void {
  writeFileSync(`${file}.new`, JSON.stringify(value), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function createBucketFolder(folder: string, settings: BucketSettings): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeJson(path.join(folder, 'bucket.json'), settings);
}

function openBucket(folder: string): BucketStore {
  let settings = bucketSettingsSchema.parse(JSON.parse(readFileSync(path.join(folder, 'bucket.json'), 'utf8')));
  const incoming = path.join(folder, 'incoming');
  rmSync(incoming, { recursive: true, force: true });
  for (const name of ['incoming', 'versions', 'data'])
    mkdirSync(path.join(folder, name), { recursive: true, mode: 0o700 });
  const byKey = readVersions(path.join(folder, 'versions'));
  let sorted: string[] | null = null;
  let seq = Math.max(0, ...[...byKey.values()].map(([newest]) => newest?.seq ?? 0));
  const recordOf = ({ seq: number }: StoredVersion): string => path.join(folder, 'versions', `${number}.json`);

  const forget = (version: StoredVersion): void => {
    rmSync(recordOf(version), { force: true });
    for (const { file } of version.pieces) rmSync(path.join(folder, file), { force: true });
    const left = (byKey.get(version.key) ?? []).filter((other) => other.seq !== version.seq);
    if (left.length > 0) byKey.set(version.key, left);
    else byKey.delete(version.key);
    sorted = null;
  };

  return {
    get settings() {
      return settings;
    },
    change: (changed) => {
      writeJson(path.join(folder, 'bucket.json'), changed);
      settings = changed;
    },
    incoming,
    versionsOf: (key) => byKey.get(key) ?? [],
    keys: (prefix) => {
      sorted ??= [...byKey.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      return prefix === '' ? sorted : sorted.filter((key) => key.startsWith(prefix));
    },
    add: (fresh, files) => {
      seq += 1;
      const pieces = files.map(({ file, bytes }) => {
        const kept = path.join('data', newId());
        renameSync(file, path.join(folder, kept));
        return { file: kept, bytes };
      });
      const versionId = settings.hasVersions ? newId() : 'null';
      const version = { ...fresh, versionId, seq, pieces, bytes: pieces.reduce((sum, { bytes }) => sum + bytes, 0) };
      const before = byKey.get(version.key) ?? [];
      writeJson(recordOf(version), version);
      byKey.set(version.key, [version, ...before]);
      if (before.length === 0) sorted = null;
      for (const other of before) if (other.versionId === versionId) forget(other);
      return version;
    },
    replace: (version) => {
      writeJson(recordOf(version), version);
      byKey.set(
        version.key,
        (byKey.get(version.key) ?? []).map((other) => (other.seq === version.seq ? version : other)),
      );
    },
    remove: forget,
    fileOf: ({ file }) => path.join(folder, file),
    isEmpty: () => byKey.size === 0,
  };
}

function readVersions(folder: string): Map<string, StoredVersion[]> {
  const byKey = new Map<string, StoredVersion[]>();
  if (!existsSync(folder)) return byKey;
  const versions = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => storedVersionSchema.parse(JSON.parse(readFileSync(path.join(folder, name), 'utf8'))))
    .sort((a, b) => b.seq - a.seq);
  for (const version of versions) byKey.set(version.key, [...(byKey.get(version.key) ?? []), version]);
  return byKey;
}

/** All buckets of an emulator. Each bucket is a folder. */
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

const uploadSchema = z.strictObject({
  id: z.string(),
  key: z.string(),
  startedAt: z.iso.datetime(),
  contentType: z.string(),
  metadata: z.record(z.string(), z.string()),
  /** True if the client requested checksums at the start. The finished object then gets a checksum. */
  hasChecksum: z.boolean(),
  retention: retentionSchema.nullable(),
  isOnLegalHold: z.boolean(),
});
export type Upload = z.infer<typeof uploadSchema>;

const partSchema = z.strictObject({
  number: z.int(),
  bytes: z.int(),
  md5: z.string(),
  checksum: checksumSchema,
  modifiedAt: z.iso.datetime(),
});
export type Part = z.infer<typeof partSchema> & { file: string };

/** The unfinished uploads of a bucket. The uploads are on disk, so they survive a restart. */
export interface Uploads {
  start(upload: Omit<Upload, 'id'>): Upload;
  /** @throws S3Refusal NoSuchUpload */
  get(id: string, key: string): Upload;
  putPart(upload: Upload, number: number, body: ReceivedBody, modifiedAt: string): void;
  /** Returns the parts, ordered by number. */
  parts(upload: Upload): Part[];
  list(): Upload[];
  /** Removes the upload and its remaining parts. */
  end(upload: Upload): void;
}

export function openUploads(bucketFolder: string): Uploads {
  const root = path.join(bucketFolder, 'uploads');
  const folderOf = (id: string): string => path.join(root, id);
  const read = (id: string): Upload =>
    uploadSchema.parse(JSON.parse(readFileSync(path.join(folderOf(id), 'upload.json'), 'utf8')));
  return {
    start: (fresh) => {
      const upload = { ...fresh, id: randomBytes(16).toString('hex') };
      mkdirSync(folderOf(upload.id), { recursive: true, mode: 0o700 });
      writeJson(path.join(folderOf(upload.id), 'upload.json'), upload);
      return upload;
    },
    get: (id, key) => {
      const upload = /^[0-9a-f]{32}$/.test(id) && existsSync(path.join(folderOf(id), 'upload.json')) ? read(id) : null;
      if (upload?.key !== key)
        refuse('NoSuchUpload', 'The specified upload does not exist. It may have been aborted or completed.');
      return upload;
    },
    putPart: ({ id }, number, { file, bytes, md5, checksum }, modifiedAt) => {
      if (!existsSync(folderOf(id))) refuse('NoSuchUpload', 'The upload was aborted meanwhile.');
      renameSync(file, path.join(folderOf(id), `${number}.data`));
      writeJson(path.join(folderOf(id), `${number}.part`), {
        number,
        bytes,
        md5: md5.toString('hex'),
        checksum,
        modifiedAt,
      });
    },
    parts: ({ id }) =>
      readdirSync(folderOf(id))
        .filter((name) => name.endsWith('.part'))
        .map((name) => partSchema.parse(JSON.parse(readFileSync(path.join(folderOf(id), name), 'utf8'))))
        .map((part) => ({ ...part, file: path.join(folderOf(id), `${part.number}.data`) }))
        .sort((a, b) => a.number - b.number),
    list: () => (existsSync(root) ? readdirSync(root) : []).map(read).sort((a, b) => (a.key < b.key ? -1 : 1)),
    end: ({ id }) => rmSync(folderOf(id), { recursive: true, force: true }),
  };
}
