import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { writeJson } from './bucket-store';
import type { ReceivedBody } from './receive-body';
import { refuse } from './s3-errors';
import { checksumSchema, retentionSchema } from './stored-version';

const uploadSchema = z.strictObject({
  id: z.string(),
  key: z.string(),
  startedAt: z.iso.datetime(),
  contentType: z.string(),
  metadata: z.record(z.string(), z.string()),
  /** True if the client requested checksums at the start. The object then gets one. */
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

/** The unfinished uploads of a bucket. They are only on disk, so they survive a restart. */
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
