import {
  AbortMultipartUploadCommand,
  ListMultipartUploadsCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { forEachAtOnce } from './for-each-at-once';

const abortsAtOnce = 4;

/**
 * Aborts unfinished multipart uploads below `prefix`: a worker that was killed during one leaves parts that cost money
 * and are listed nowhere else. If the storage does not know the call, or the key may not make it, they are left to the
 * bucket's own rules.
 */
export async function abortUploads(
  client: S3Client,
  bucket: string,
  prefix: string,
  isKept: (key: string) => boolean,
): Promise<void> {
  try {
    for await (const page of listUploads(client, bucket, prefix)) {
      const unwanted = page.filter(({ Key }) => !isKept(Key));
      await forEachAtOnce(abortsAtOnce, unwanted, async (upload) => {
        await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, ...upload })).catch(unlessStatus(404));
      });
    }
  } catch (error) {
    unlessStatus(403, 501)(error);
  }
}

interface UnfinishedUpload {
  Key: string;
  UploadId: string;
}

async function* listUploads(client: S3Client, Bucket: string, Prefix: string): AsyncGenerator<UnfinishedUpload[]> {
  let marker: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | null = {};
  while (marker !== null) {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(client, { Bucket, Prefix, ...marker });
    yield (page.Uploads ?? []).flatMap(({ Key, UploadId }) =>
      Key === undefined || UploadId === undefined ? [] : [{ Key, UploadId }],
    );
    const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
    marker = IsTruncated === true && KeyMarker !== undefined ? { KeyMarker, UploadIdMarker } : null;
  }
}

const readPage = (client: S3Client, input: ConstructorParameters<typeof ListMultipartUploadsCommand>[0]) =>
  client.send(new ListMultipartUploadsCommand(input));

const unlessStatus =
  (...statuses: number[]) =>
  (error: unknown): void => {
    const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
    if (status === undefined || !statuses.includes(status)) throw error;
  };
