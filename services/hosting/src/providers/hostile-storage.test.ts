/**
 * Reads from storages that answer without end, with nonsense or with refusals.
 *
 * @tier long
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { uuidv7 } from 'uuidv7';
import { lookAtChain } from '../offsite/fetch-chain';
import { readsAtOnce } from '../offsite/open-destination';
import { translateS3 } from './offsite-errors';
import type { OffsiteStorage } from './offsite-storage';
import { s3OffsiteStorage } from './offsite-storage.s3';

/** No test reaches these deadlines, even on a busy machine. */
const deadlines = { connectMs: 60_000, idleMs: 60_000, objectMs: 120_000 };
/** Far below the limit in production, and above any honest listing in these tests. */
const pagesMax = 50;
const folder = `${uuidv7()}/${uuidv7()}`;
const key = `${folder}/1`;

/** Runs `work` against a hostile endpoint. Resolves with the error of `work` and the number of bytes that were sent. */
async function facing(
  listener: http.RequestListener,
  work: (storage: OffsiteStorage) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<{ error: unknown; bytesTaken: number }> {
  const server = http.createServer(listener);
  let bytesTaken = 0;
  server.on('connection', (socket) => socket.on('close', () => (bytesTaken += socket.bytesWritten)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = s3OffsiteStorage({ allowed: new Set([host]), pagesMax });
  const place = { endpoint: `http://${host}`, region: 'us-east-1', bucket: 'copies', prefix: '' };
  const storage = open(
    place,
    { accessKeyId: 'KEY', secretAccessKey: 'secret' },
    { deadlines, ...(signal && { signal }) },
  );
  const error = await work(storage).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  storage.close();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  return { error, bytesTaken };
}

const always =
  (status: number, body: string, type = 'text/html'): http.RequestListener =>
  (request, response) => {
    request.resume().on('end', () => response.writeHead(status, { 'content-type': type }).end(body));
  };
const s3Error = (status: number, code: string): http.RequestListener =>
  always(
    status,
    `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`,
    'application/xml',
  );

const read = (storage: OffsiteStorage) => storage.source(key).read('manifest');
const write = (storage: OffsiteStorage) => storage.sink(key).write('manifest', Buffer.from('x'));
const remove = (storage: OffsiteStorage) => storage.removeAll(folder);
const probe = (storage: OffsiteStorage) => storage.probe(uuidv7());

describe('an endpoint that answers without end', () => {
  const endless =
    (status: number): http.RequestListener =>
    (request, response) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'application/xml' });
      const piece = Buffer.alloc(256 * 1024, 'a');
      const pour = (): void => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', pour);
      pour();
    };

  it.each([
    ['an error to a read', 500, read],
    ['a refusal to a read', 403, read],
    ['a write', 200, write],
    ['a listing', 200, remove],
  ])('in place of %s does not fill our memory', async (_what, status, work) => {
    const { error, bytesTaken } = await facing(endless(status), work);
    expect(String(error)).toContain('larger than');
    expect(bytesTaken).toBeLessThan(64e6);
  });
});

const megabyte = 2 ** 20;
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const chainOf = (links: number, manifest = '') =>
  Array.from({ length: links }, (_, at) => ({
    id: uuidv7(),
    archive: {
      objectKey: `${folder}/${at}`,
      manifestMac: '',
      manifestSha256: createHash('sha256').update(manifest).digest('hex'),
      sizeBytes: 1,
      rawBytes: 1,
    },
  }));

describe('a request that looks at a chain of a hundred copies for as long as it may', () => {
  /**
   * Looks at a storage that answers only the first `manifests` calls. The time limit ends the look when six further
   * calls have reached the storage.
   */
  const lookAt = async (manifests: number, content: string) => {
    const limit = new AbortController();
    let calls = 0;
    const slow: http.RequestListener = (_request, response) => {
      calls += 1;
      if (calls <= manifests) response.end(content);
      // At most six calls are open at a time. When six calls are left unanswered, the answers to all earlier calls have
      // arrived.
      if (calls === manifests + readsAtOnce) limit.abort();
    };
    let seen: unknown;
    const { error } = await facing(
      slow,
      async (storage) => {
        seen = await lookAtChain(storage, chainOf(100, 'manifest'), limit.signal);
      },
      limit.signal,
    );
    return error ?? seen;
  };

  it('goes by what has arrived, if that is more than the calls of one round', async () => {
    expect(await lookAt(readsAtOnce, 'manifest')).toEqual({
      present: Array(6).fill(expect.any(String)),
      missing: [],
      altered: [],
    });
    expect(await lookAt(50, 'other')).toMatchObject({ altered: Array(50).fill(expect.any(String)) });
  });

  it('ends with the storage’s silence, if not even one round was answered', async () => {
    expect(await lookAt(readsAtOnce - 1, 'manifest')).toBeInstanceOf(Error);
  });
});

it('a request that looks at a chain keeps nothing of what its storage sends for manifests', async () => {
  const [links, sentMb] = [6, 14];
  const bytesHeld = (): number => {
    collectGarbage();
    return process.memoryUsage().arrayBuffers;
  };
  const before = bytesHeld();
  let most = 0;
  const all: (() => void)[] = [];
  const large: http.RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-length': (sentMb + 1) * megabyte });
    const piece = Buffer.alloc(megabyte, 'a');
    for (let sent = 1; sent < sentMb; sent += 1) response.write(piece);
    response.write(piece, () => {
      all.push(() => response.end(piece));
      if (all.length < links) return;
      // At this point every answer was sent except its last piece.
      most = bytesHeld() - before;
      for (const end of all) end();
    });
  };
  const { error } = await facing(large, (storage) => lookAtChain(storage, chainOf(links)));
  expect(error).toBeNull();
  // The server runs in this process too, so its unsent pieces are part of the measured memory.
  expect(most).toBeLessThan((links * sentMb * megabyte) / 2);
});

it.each([
  ['segment-00000001', 8],
  ['manifest', 16],
  ['index-00000001', 24],
])('of %s not much more is read than the largest one may have: %d MB', async (name, mostMb) => {
  const isDeclared: http.RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-length': (mostMb + 2) * megabyte });
    for (let sent = 0; sent < mostMb + 2; sent += 1) response.write(Buffer.alloc(megabyte));
    response.end();
  };
  expect((await facing(isDeclared, (storage) => storage.source(key).read(name))).error).toMatchObject({
    reason: 'tampered',
  });
});

// The client's parser would copy the whole answer for each document type. An answer of 4 MB with 500 document types
// blocks the process for minutes.
it.each([
  ['an error', 500, read],
  ['a refusal', 403, read],
  ['a listing', 200, remove],
])('%s of many document types is not parsed', async (_what, status, work) => {
  const inPieces: http.RequestListener = (request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'application/xml' });
    for (let at = 0; at < 20; at += 1) response.write(at % 2 === 0 ? '<!DOC' : 'type a><!docTYPE>');
    response.end('<a/>');
  };
  expect(String((await facing(inPieces, work)).error)).toContain('several document types');
});

it('a page of an error may have a document type', async () => {
  const { error } = await facing(always(403, '<!DOCTYPE html><html>not yours</html>'), probe);
  expect(error).toMatchObject({ refusal: 'credentials_rejected' });
});

it('of a long listing only one page is in memory: each is processed before the next is requested', async () => {
  const calls: string[] = [];
  const { error } = await facing((request, response) => {
    const { searchParams, pathname } = new URL(request.url ?? '', 'http://storage');
    const prefix = searchParams.get('prefix');
    calls.push(prefix === null ? `${request.method} ${pathname.at(-1)}` : 'list');
    const page = calls.filter((call) => call === 'list').length;
    const contents = `<Contents><Key>${prefix}${page}</Key></Contents><IsTruncated>${page < 3}</IsTruncated>`;
    const body = `<?xml version="1.0"?><ListBucketResult>${contents}<NextContinuationToken>${page}</NextContinuationToken></ListBucketResult>`;
    request.resume().on('end', () => {
      if (prefix === null) response.writeHead(204).end();
      else response.writeHead(200, { 'content-type': 'application/xml' }).end(body);
    });
  }, remove);
  expect([error, calls]).toEqual([null, ['list', 'DELETE 1', 'list', 'DELETE 2', 'list', 'DELETE 3']]);
});

it('a listing whose pages never end is given up', async () => {
  let pages = 0;
  const { error } = await facing((request, response) => {
    pages += 1;
    const page = `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${pages}</NextContinuationToken></ListBucketResult>`;
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/xml' }).end(page));
  }, remove);
  expect(error).toMatchObject({ refusal: 'bucket_unusable' });
  expect(pages).toBe(pagesMax);
});

describe('an endpoint that is no storage, or one that refuses', () => {
  it.each([
    ['finds nothing', always(404, '<html>no such page</html>')],
    ['finds nothing and says nothing', always(404, '')],
    ['takes no PUT', always(405, '<html>not here</html>')],
    ['calls it a bad request', always(400, '<html>bad request</html>')],
    ['has a page for everything', always(200, '<html>welcome</html>')],
    ['is full', s3Error(507, 'XMinioStorageFull')],
    ['does not know the arguments', s3Error(400, 'InvalidArgument')],
  ])('is told of as a bucket that cannot be used when it %s', async (_what, listener) => {
    expect((await facing(listener, probe)).error).toMatchObject({ refusal: 'bucket_unusable' });
  });

  it.each(['ExpiredToken', 'InvalidToken'])('is told of as one that rejects the credentials by %s', async (code) => {
    expect((await facing(s3Error(400, code), probe)).error).toMatchObject({ refusal: 'credentials_rejected' });
  });

  it.each([
    [400, 'RequestTimeout'],
    [400, 'BadDigest'],
    [403, 'RequestTimeTooSkewed'],
    [409, 'OperationAborted'],
    [429, 'TooManyRequests'],
    [503, 'SlowDown'],
  ])('may be asked again after %d %s', async (status, code) => {
    const { error } = await facing(s3Error(status, code), write);
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toHaveProperty('refusal');
    expect(error).not.toHaveProperty('reason');
  });

  it.each(['constructor', '__proto__', 'toString'])(
    'is believed to refuse by its status when its code is %s',
    async (code) => {
      expect((await facing(s3Error(403, code), read)).error).toMatchObject({ refusal: 'credentials_rejected' });
    },
  );

  it.each(['a\0b', 'a&#0;b', 'x'.repeat(10_000), 'two\nlines'])(
    'leaves no text of its own on record: %j',
    async (code) => {
      expect((await facing(s3Error(403, code), read)).error).toMatchObject({
        message: 'credentials_rejected: no code, HTTP 403',
      });
    },
  );
});

describe('TLS that cannot be trusted is refused, and not tried for hours', () => {
  it.each([
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'INVALID_CA',
    'EPROTO',
  ])('as Node tells it by %s', async (code) => {
    const failing = translateS3(() => Promise.reject(Object.assign(new Error('as Node words it'), { code })));
    await expect(failing).rejects.toMatchObject({ refusal: 'endpoint_refused' });
  });
});

it('a probe that fails half-way leaves nothing in the customer’s bucket', async () => {
  const objects = new Map<string, Buffer>();
  const withoutListing: http.RequestListener = (request, response) => {
    const pieces: Buffer[] = [];
    const [path = '', query] = (request.url ?? '').split('?');
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      if (query?.includes('list-type') === true) return response.writeHead(403).end();
      if (request.method === 'PUT') objects.set(path, Buffer.concat(pieces));
      if (request.method === 'DELETE') objects.delete(path);
      response.end(request.method === 'GET' ? objects.get(path) : undefined);
    });
  };
  expect((await facing(withoutListing, probe)).error).toMatchObject({ refusal: 'credentials_rejected' });
  expect([...objects.keys()]).toEqual([]);
});
