import type { KeyObject } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createHttpServer } from '@drydock/service-kit/http-server';
import { assertBound, TokenRefusal, verifyInternalToken } from '@drydock/service-kit/internal-token';
import type { Log } from '@drydock/service-kit/log';
import { z } from 'zod';
import type { ControlProtocol } from './control-protocol';
import type { ControlAnswer, ControlRoute } from './control-routes';
import { HostError } from './host-error';

const bodyBytesMax = 64 * 1024;

export interface ControlOptions {
  protocol: Pick<ControlProtocol<string>, 'parties' | 'statuses'>;
  routes: readonly ControlRoute[];
  /** Verifies the callers' tokens. */
  key: KeyObject;
  log: Log;
  /** What must work for this process to be of use. */
  check: () => Promise<void>;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    const buffer: Buffer = part;
    bytes += buffer.length;
    if (bytes > bodyBytesMax) throw new HostError('invalid_request', 'the body is too large');
    parts.push(buffer);
  }
  return Buffer.concat(parts);
}

function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HostError('invalid_request', 'the body is not JSON');
  }
}

function refusalOf(error: unknown): HostError<string> {
  if (error instanceof HostError) return error;
  if (error instanceof TokenRefusal) return new HostError('unauthenticated', error.message);
  if (error instanceof z.ZodError) return new HostError('invalid_request', z.prettifyError(error));
  return new HostError('internal', 'see the log', { cause: error });
}

/** The control protocol over HTTP, each call proved by a token that is bound to it; `/healthz` and `/readyz` for everybody. */
export function createControlServer({ protocol, routes, key, log, check }: ControlOptions): Server {
  const authorise = async (request: IncomingMessage, path: string): Promise<Buffer> => {
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const claims = verifyInternalToken(token, { key, ...protocol.parties, method: request.method ?? '', path });
    const body = await readBody(request);
    assertBound(claims, body, undefined);
    return body;
  };

  const answer = async (request: IncomingMessage): Promise<ControlAnswer> => {
    const path = request.url ?? '/';
    if (path === '/healthz') return { status: 200, body: { status: 'ok' } };
    if (path === '/readyz') return readiness(check);
    const body = await authorise(request, path);
    for (const route of routes) {
      const match = route.method === request.method ? route.pattern.exec(path) : null;
      if (match) return route.handle(match.slice(1).map(decodeURIComponent), parseBody(body));
    }
    throw new HostError('unknown_route', `${request.method} ${path}`);
  };

  return createHttpServer((request, response) => {
    answer(request)
      .catch((error: unknown): ControlAnswer => {
        const { code, message: detail } = refusalOf(error);
        if (code === 'internal') log.error({ err: error, path: request.url }, 'a control call failed');
        else log.info({ code, detail, path: request.url }, 'a control call was refused');
        return { status: protocol.statuses[code] ?? 500, body: { code, detail } };
      })
      .then((answered) => send(response, answered))
      .catch((error: unknown) => log.error({ err: error }, 'an answer could not be sent'));
  });
}

async function readiness(check: () => Promise<void>): Promise<ControlAnswer> {
  try {
    await check();
    return { status: 200, body: { status: 'ready' } };
  } catch {
    return { status: 503, body: { status: 'not_ready' } };
  }
}

function send(response: ServerResponse, { status, body }: ControlAnswer): void {
  const text = body === undefined ? '' : JSON.stringify(body);
  response.writeHead(status, body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}
