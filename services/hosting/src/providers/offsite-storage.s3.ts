import { createHash, randomBytes } from 'node:crypto';
import { pipeline, Readable, Transform } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { ArchiveError, type ArchiveSource, isObjectName, manifestName } from '@drydock/archive';
import { timeLimit } from '@drydock/process';
import { createGuardedAgents, type ResolveAll } from '@drydock/service/outbound';
import { forEachAtOnce } from './for-each-at-once';
import { isArchiveMissing, translateS3 } from './offsite-errors';
import {
  type OffsiteDeadlines,
  OffsiteError,
  type OffsitePlace,
  type OffsiteStorage,
  type OpenOffsite,
} from './offsite-storage';
import {
  type BodyLimits,
  digestObjectBody,
  leaveRequestsOutOfTraces,
  objectBytesMax,
  readObjectBody,
} from './s3-bucket';

/**
 * The most bytes of a page of a listing. A thousand of the longest keys, with their other fields, take half of this.
 */
const listingBytesMax = 4 * 1024 * 1024;
/**
 * The most bytes of an error, and of an answer that is neither an object nor a listing. The main thread parses these
 * answers, so a large one would delay all other work.
 */
const answerBytesMax = 64 * 1024;

/** The most document types in an answer. An error page of a web server has one, and an answer of S3 has none. */
const documentTypesMax = 1;
const documentType = '<!doctype';

/**
 * Cuts off answers that are larger than any real one, because the client reads every answer into memory, errors too.
 * Also cuts off an answer with several document types. The client's parser copies the whole answer once for each
 * document type, and each copy of 4 MB takes half a second.
 */
function capAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const answered = await next(args);
        const { response } = answered;
        if (!hasBody(response)) return answered;
        const isRefusal = response.statusCode >= 300;
        // `readObjectBody` and `digestObjectBody` limit the content of an object.
        if (commandName === 'GetObjectCommand' && !isRefusal) return answered;
        response.body = capped(
          response.body,
          commandName === 'ListObjectsV2Command' && !isRefusal ? listingBytesMax : answerBytesMax,
        );
        return answered;
      },
    { step: 'deserialize', priority: 'low', name: 'capAnswers' },
  );
}

const hasBody = (response: unknown): response is { statusCode: number; body: Readable } =>
  typeof response === 'object' &&
  response !== null &&
  'statusCode' in response &&
  typeof response.statusCode === 'number' &&
  'body' in response &&
  response.body instanceof Readable;

function capped(body: Readable, bytesMax: number): Readable {
  let bytes = 0;
  let documentTypes = 0;
  let lastLetters = '';
  const counter = new Transform({
    transform: (piece: Buffer, _encoding, done) => {
      bytes += piece.length;
      const seen = (lastLetters + piece.toString('latin1')).toLowerCase();
      documentTypes += seen.split(documentType).length - 1;
      lastLetters = seen.slice(1 - documentType.length);
      if (bytes > bytesMax) done(new Error(`an answer larger than ${bytesMax} bytes`));
      else if (documentTypes > documentTypesMax) done(new Error('an answer of several document types'));
      else done(null, piece);
    },
  });
  // When `counter` fails, `pipeline` destroys the body, which closes the connection. The client, which reads from
  // `counter`, gets the error.
  pipeline(body, counter, () => undefined);
  return counter;
}

interface S3OffsiteOptions {
  /** The `host:port`s of emulators, which may have a private address. */
  allowed: ReadonlySet<string>;
  resolve?: ResolveAll;
  /** The most pages of a listing. Only tests set this. */
  pagesMax?: number;
}

/** Within `objectMs` a line of 4 Mbit/s carries 60 MB, more than twice the largest object of an archive. */
const defaultDeadlines: OffsiteDeadlines = { connectMs: 5_000, idleMs: 20_000, objectMs: 120_000 };

/** An archive of 4 TiB takes about 800 pages, and its folder may also have the leftovers of earlier attempts. */
const defaultPagesMax = 5_000;

const deletesAtOnce = 8;

const keyForm = /^[0-9a-f-]{36}\/[0-9a-f-]{36}(?:\/\d{1,20})?$/;

/** Opens any S3 storage, with path-style addresses and SigV4 signatures. Redirects are not followed. */
export function s3OffsiteStorage({ allowed, resolve, pagesMax = defaultPagesMax }: S3OffsiteOptions): OpenOffsite {
  return (place, credentials, { signal, deadlines = defaultDeadlines } = {}) => {
    const agents = createGuardedAgents({
      origin: place.endpoint,
      allowed,
      ...(resolve === undefined ? {} : { resolve }),
    });
    const client = new S3Client({
      endpoint: place.endpoint,
      region: place.region,
      credentials,
      forcePathStyle: true,
      followRegionRedirects: false,
      disableS3ExpressSessionAuth: true,
      // The newer checksums are off, because storages other than Amazon's may not know them. Signatures cover what is
      // sent, and the HMACs of the archives cover what is received.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: 3,
      requestHandler: { ...agents, connectionTimeout: deadlines.connectMs, socketTimeout: deadlines.idleMs },
    });
    capAnswers(client);
    leaveRequestsOutOfTraces(client);
    const limit = (): AbortSignal => {
      const deadline = timeLimit(deadlines.objectMs);
      return signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    };
    return new OpenS3(client, { place, limit, pagesMax });
  };
}

class OpenS3 implements OffsiteStorage {
  private readonly client: S3Client;
  private readonly place: OffsitePlace;
  private readonly limit: () => AbortSignal;
  private readonly pagesMax: number;

  constructor(
    client: S3Client,
    { place, limit, pagesMax }: { place: OffsitePlace; limit: () => AbortSignal; pagesMax: number },
  ) {
    this.client = client;
    this.place = place;
    this.limit = limit;
    this.pagesMax = pagesMax;
  }

  source(objectKey: string): ArchiveSource {
    const folder = this.folderOf(objectKey);
    return { read: (name) => this.read(`${folder}/${objectName(name)}`, objectBytesMax(name)) };
  }

  manifestSha256(objectKey: string): Promise<string> {
    const bytesMax = objectBytesMax(manifestName);
    return this.get(`${this.folderOf(objectKey)}/${manifestName}`, bytesMax, (body, _bytes, limits) =>
      digestObjectBody(body, limits),
    );
  }

  sink(objectKey: string) {
    const folder = this.folderOf(objectKey);
    return { write: (name: string, bytes: Buffer) => this.write(`${folder}/${objectName(name)}`, bytes) };
  }

  async removeAll(folderKey: string, keep?: string): Promise<void> {
    const kept = keep === undefined ? null : `${this.folderOf(keep)}/`;
    for await (const keys of this.list(`${this.folderOf(folderKey)}/`)) {
      const unwanted = keys.filter((key) => kept === null || !key.startsWith(kept));
      await forEachAtOnce(deletesAtOnce, unwanted, (key) => this.delete(key));
    }
  }

  async probe(id: string): Promise<void> {
    const key = this.at(`drydock-probe-${id}`);
    const content = randomBytes(64);
    await this.write(key, content);
    try {
      if (!(await this.read(key, answerBytesMax)).equals(content))
        throw new OffsiteError('bucket_unusable', 'what was written is not what is read');
      if (!(await this.isListed(key))) throw new OffsiteError('bucket_unusable', 'what was written is not listed');
    } catch (error) {
      // The bucket is the customer's, so a failed probe removes its object if it can.
      await this.delete(key).catch(() => undefined);
      throw asUnusable(error);
    }
    await this.delete(key);
    const left = await this.read(key, answerBytesMax).then(
      () => true,
      (error: unknown) => !isArchiveMissing(error),
    );
    if (left) throw new OffsiteError('bucket_unusable', 'what was deleted is still there');
  }

  close(): void {
    this.client.destroy();
  }

  private read(key: string, bytesMax: number): Promise<Buffer> {
    return this.get(key, bytesMax, readObjectBody);
  }

  /** `take` gets the body and its declared length. */
  private async get<T>(
    Key: string,
    bytesMax: number,
    take: (body: unknown, declaredBytes: number | undefined, limits: BodyLimits) => Promise<T>,
  ): Promise<T> {
    const signal = this.limit();
    const send = async (): Promise<T> => {
      const { Body, ContentLength } = await this.client.send(new GetObjectCommand({ Bucket: this.place.bucket, Key }), {
        abortSignal: signal,
      });
      return take(Body, ContentLength, { bytesMax, signal });
    };
    return translateS3(send, { isRead: true });
  }

  private async write(Key: string, Body: Buffer): Promise<void> {
    // A bucket with locks accepts no object without a digest. Every storage knows MD5.
    const ContentMD5 = createHash('md5').update(Body).digest('base64');
    const command = new PutObjectCommand({
      Bucket: this.place.bucket,
      Key,
      Body,
      ContentLength: Body.length,
      ContentMD5,
    });
    await translateS3(() => this.client.send(command, { abortSignal: this.limit() }));
  }

  private async delete(Key: string): Promise<void> {
    await translateS3(() =>
      this.client.send(new DeleteObjectCommand({ Bucket: this.place.bucket, Key }), { abortSignal: this.limit() }),
    );
  }

  private async isListed(key: string): Promise<boolean> {
    for await (const keys of this.list(key)) if (keys.includes(key)) return true;
    return false;
  }

  /** Yields the keys below `Prefix`, page by page. The storage decides how many keys a page has. */
  private async *list(Prefix: string): AsyncGenerator<string[]> {
    let token: string | undefined;
    for (let page = 0; page === 0 || token !== undefined; page += 1) {
      if (page === this.pagesMax)
        throw new OffsiteError('bucket_unusable', `a listing of more than ${this.pagesMax} pages`);
      const command = new ListObjectsV2Command({
        Bucket: this.place.bucket,
        Prefix,
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const answer = await translateS3(() => this.client.send(command, { abortSignal: this.limit() }));
      // A false listing must not make Drydock delete other objects, so keys outside the prefix are dropped.
      yield (answer.Contents ?? []).flatMap(({ Key }) => (Key?.startsWith(Prefix) === true ? [Key] : []));
      token =
        answer.IsTruncated === true && answer.NextContinuationToken !== token
          ? answer.NextContinuationToken
          : undefined;
    }
  }

  private folderOf(objectKey: string): string {
    // Keys are made from ids, but a malformed key must not reach outside the prefix.
    if (!keyForm.test(objectKey)) throw new Error(`not an object key: ${objectKey}`);
    return this.at(objectKey);
  }

  private at(name: string): string {
    return this.place.prefix === '' ? name : `${this.place.prefix}/${name}`;
  }
}

/**
 * Makes an ArchiveError of the probe a refusal of the bucket: the probe's object is missing or too large right after it
 * was written.
 */
const asUnusable = (error: unknown): unknown =>
  error instanceof ArchiveError
    ? new OffsiteError('bucket_unusable', 'what was written is not there', { cause: error })
    : error;

function objectName(name: string): string {
  if (!isObjectName(name)) throw new TypeError(`not the name of an archive object: ${name}`);
  return name;
}
