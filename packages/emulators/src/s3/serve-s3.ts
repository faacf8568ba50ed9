import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallLog } from '../protocol/call-log';
import type { FaultOrder, FaultOrders } from '../protocol/fault-orders';
import { authenticate, type S3Account } from './authenticate';
import { answerS3 } from './route-s3';
import { emptyAnswer, parseCall, type S3Call, type S3Reply } from './s3-call';
import { errorDocument, S3Refusal } from './s3-errors';
import type { S3World } from './s3-world';
import { sendFaultyS3, sendS3 } from './send-s3';

export interface S3Service {
  world: S3World;
  accounts: readonly S3Account[];
  faults: FaultOrders;
  calls: CallLog;
  /** Requests under /emulator, which cannot be the name of a bucket. */
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
  const status = fault !== null && 'status' in fault.answer ? fault.answer.status : reply.status;
  service.calls.add({ at: Date.now(), method: call.method, path: request.url ?? '/', status });
  // The rest of a refused body is not awaited; a small rest is read, so that the connection can be used again.
  if (!request.complete) response.shouldKeepAlive = false;
  if (fault === null) await sendS3(response, reply);
  else await sendFaultyS3(response, reply, fault.answer);
}

const isReal = ({ isCarriedOut, answer }: FaultOrder): boolean =>
  isCarriedOut || ['as_usual', 'edited', 'truncated', 'drip'].includes(answer.kind);

async function replyTo({ world, accounts }: S3Service, call: S3Call): Promise<S3Reply> {
  try {
    // Signatures use the caller's clock. The emulator's own clock may be days ahead.
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
