import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallLog } from '../protocol/call';
import { type FaultAnswer, type FaultOrder, type FaultOrders, faultyStatus } from '../protocol/faults';
import { assertMayUse, authenticate, type Caller, type S3Account } from './authenticate';
import * as buckets from './bucket-calls';
import { listObjects, listVersions } from './bucket-calls';
import * as multipart from './multipart-calls';
import * as objects from './object-calls';
import { type Answer, emptyAnswer, parseCall, type S3Call, type S3Reply, type S3World } from './s3-call';
import { errorDocument, refuse, S3Refusal } from './s3-errors';

type Change = (piece: Buffer, offset: number) => Buffer;
const unchanged: Change = (piece) => piece;

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      response.off('drain', go).off('close', go);
      resolve();
    };
    response.on('drain', go).on('close', go);
  });

/** Sends a reply. A file is read only as fast as the client reads, and no further once the client disconnects. */
async function sendS3(response: ServerResponse, reply: S3Reply, change: Change = unchanged): Promise<void> {
  const { status, headers, body } = reply;
  if (body.kind === 'text') {
    const bytes = Buffer.from(body.text);
    response.writeHead(status, {
      'content-type': body.contentType ?? 'application/xml',
      ...headers,
      'content-length': String(bytes.length),
    });
    response.end(bytes);
    return;
  }
  if (body.kind === 'empty') {
    response.writeHead(status, {
      ...(status === 204 || 'content-length' in headers ? {} : { 'content-length': '0' }),
      ...headers,
    });
    response.end();
    return;
  }
  response.writeHead(status, headers);
  let offset = 0;
  for await (const piece of body.stream) {
    if (response.destroyed) return;
    if (!response.write(change(piece, offset))) await drained(response);
    offset += piece.length;
  }
  response.end();
}

/**
 * Sends a faulty answer. An S3 body is bytes and not JSON, so `edited` replaces single bytes by their offset, such as
 * `{"17": 0}`.
 */
async function sendFaultyS3(response: ServerResponse, reply: S3Reply, answer: FaultAnswer): Promise<void> {
  switch (answer.kind) {
    case 'as_usual':
      return await sendS3(response, reply);
    case 'fixed':
      return await sendS3(response, {
        status: answer.status,
        headers: answer.headers,
        body: { kind: 'text', text: answer.body },
      });
    case 'edited':
      return await sendS3(response, reply, (piece, offset) => withBytes(piece, offset, answer.set));
    case 'reset':
      response.socket?.resetAndDestroy();
      return;
    case 'silence':
      return;
    case 'truncated':
      return await sendS3(response, reply, (piece, offset) => {
        if (offset + piece.length < answer.bytes) return piece;
        setImmediate(() => response.socket?.destroy());
        return piece.subarray(0, Math.max(0, answer.bytes - offset));
      });
    case 'endless':
      return await sendEndless(response, answer.bytes ?? Number.POSITIVE_INFINITY);
    case 'drip':
      return await sendDrip(response, reply, answer.intervalMs);
  }
}

function withBytes(piece: Buffer, offset: number, set: Readonly<Record<string, unknown>>): Buffer {
  const changed = Buffer.from(piece);
  for (const [at, value] of Object.entries(set)) {
    const index = Number(at) - offset;
    if (index >= 0 && index < changed.length) changed[index] = Number(value);
  }
  return changed;
}

async function sendEndless(response: ServerResponse, bytes: number): Promise<void> {
  const piece = Buffer.alloc(64 * 1024, 'a');
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  for (let sent = 0; sent < bytes && !response.destroyed; sent += piece.length) {
    if (!response.write(piece)) await drained(response);
    await wait(bytes === Number.POSITIVE_INFINITY ? 5 : 0);
  }
  response.end();
}

async function sendDrip(response: ServerResponse, reply: S3Reply, intervalMs: number): Promise<void> {
  const { status, headers, body } = reply;
  response.writeHead(status, headers);
  for await (const piece of body.kind === 'file' ? body.stream : [Buffer.from(body.kind === 'text' ? body.text : '')]) {
    for (const byte of piece) {
      if (response.destroyed) return;
      response.write(Buffer.of(byte));
      await wait(intervalMs);
    }
  }
  response.end();
}

interface S3Service {
  world: S3World;
  accounts: readonly S3Account[];
  faults: FaultOrders;
  calls: CallLog;
  /** Answers all requests below /emulator, so the objects of a bucket with the name `emulator` cannot be reached. */
  admin(request: IncomingMessage, response: ServerResponse): void;
}

export function createS3Server(service: S3Service): Server {
  return createServer((request, response) => {
    void (async () => {
      if (request.url === '/healthz' || request.url === '/readyz')
        return void response.writeHead(200).end('{"status":"ok"}');
      if (request.url?.startsWith('/emulator/') === true) return service.admin(request, response);
      await serveCall(service, request, response);
    })().catch(() => response.destroy());
  });
}

async function serveCall(service: S3Service, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const requestId = randomUUID();
  response.setHeader('x-amz-request-id', requestId);
  const call = parseCall(request, requestId);
  const fault = service.faults.take(call.method, request.url ?? '/');
  if (fault !== null && fault.delayMs > 0) await wait(fault.delayMs);
  const reply = fault === null || isReal(fault) ? await replyTo(service, call) : emptyAnswer(200);
  const status = fault === null ? reply.status : faultyStatus(reply.status, fault.answer);
  service.calls.add({ at: Date.now(), method: call.method, path: request.url ?? '/', status });
  // The rest of a refused body is not read, so the connection cannot be reused.
  if (!request.complete) response.shouldKeepAlive = false;
  if (fault === null) await sendS3(response, reply);
  else await sendFaultyS3(response, reply, fault.answer);
}

const isReal = ({ isCarriedOut, answer }: FaultOrder): boolean =>
  isCarriedOut || ['as_usual', 'edited', 'truncated', 'drip'].includes(answer.kind);

async function replyTo({ world, accounts }: S3Service, call: S3Call): Promise<S3Reply> {
  try {
    // A caller signs with real time, so the signature is checked against real time. The emulator's clock may be days
    // ahead.
    return await answerS3(world, call, authenticate(call, accounts, Date.now()));
  } catch (error) {
    if (!(error instanceof S3Refusal)) throw error;
    if (call.method === 'HEAD') return emptyAnswer(error.status);
    return {
      status: error.status,
      headers: {},
      body: { kind: 'text', text: errorDocument(error.code, error.message, call.rawPath, call.requestId) },
    };
  }
}

/** The functions that answer, by `<method> <sub-resource>`. An empty sub-resource means the bucket or object itself. */
type Table = Readonly<Record<string, Answer | undefined>>;

const bucketTable: Table = {
  'HEAD ': buckets.headBucket,
  'DELETE ': buckets.deleteBucket,
  'GET ': listObjects,
  'GET versions': listVersions,
  'GET uploads': multipart.listUploads,
  'GET location': buckets.getLocation,
  'GET versioning': buckets.getVersioning,
  'PUT versioning': buckets.putVersioning,
  'GET object-lock': objects.getLockConfiguration,
  'PUT object-lock': objects.putLockConfiguration,
  'POST delete': objects.deleteObjects,
};

const objectTable: Table = {
  'GET ': objects.getObject,
  'HEAD ': objects.getObject,
  'PUT ': objects.putObject,
  'DELETE ': objects.deleteObject,
  'GET retention': objects.getRetention,
  'PUT retention': objects.putRetention,
  'GET legal-hold': objects.getLegalHold,
  'PUT legal-hold': objects.putLegalHold,
  'POST uploads': multipart.startUpload,
  'PUT uploadId': multipart.putPart,
  'POST uploadId': multipart.completeUpload,
  'DELETE uploadId': multipart.abortUpload,
  'GET uploadId': multipart.listParts,
};

const subResources = [
  'versions',
  'uploads',
  'location',
  'versioning',
  'object-lock',
  'delete',
  'retention',
  'legal-hold',
  'uploadId',
] as const;
/**
 * Sub-resources of S3 that the emulator lacks. These sub-resources are refused, because a call to a sub-resource must
 * not change or return the resource itself.
 */
const unknownResources = [
  'acl',
  'attributes',
  'cors',
  'encryption',
  'lifecycle',
  'policy',
  'select',
  'tagging',
  'torrent',
  'website',
];

/** Answers a call of S3. @throws S3Refusal */
async function answerS3(world: S3World, call: S3Call, caller: Caller): Promise<S3Reply> {
  if (call.bucket === '')
    return call.method === 'GET'
      ? buckets.listBuckets(world, caller)
      : refuse('MethodNotAllowed', 'Only GET is known here.');
  assertMayUse(caller, call.bucket);
  const isRead = call.method === 'GET' || call.method === 'HEAD';
  if (!isRead && caller.account.mayWrite === false && call.method !== 'DELETE') refuse('AccessDenied', 'Access Denied');
  if (isRead && caller.account.mayRead === false && call.key !== '') refuse('AccessDenied', 'Access Denied');
  const unknown = unknownResources.find((name) => call.query.has(name));
  if (unknown !== undefined) refuse('NotImplemented', `${unknown} is not known here.`);
  const sub = subResources.find((name) => call.query.has(name)) ?? '';
  if (call.key === '' && call.method === 'PUT' && sub === '') return buckets.createBucket(world, call, caller);
  const answer = (call.key === '' ? bucketTable : objectTable)[`${call.method} ${sub}`];
  const bucket = world.buckets.get(call.bucket);
  if (answer === undefined) refuse('NotImplemented', 'This call is not known here.');
  return await answer({ world, call, caller, bucket });
}
