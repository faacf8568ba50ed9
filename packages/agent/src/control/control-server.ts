import type { KeyObject } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  assertBound,
  type InternalClaims,
  rememberTokens,
  TokenRefusal,
  verifyInternalToken,
} from '@drydock/service/access';
import { createHttpServer } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { z } from 'zod';
import { type ControlProtocol, channelProtocol, HostError } from './control-protocol';
import type { ChannelRoute, ControlAnswer, ControlRoute } from './control-routes';

/**
 * The largest body that is accepted. The longest body of our callers is a job's specification with a long chain of
 * archives.
 */
const bodyBytesMax = 1024 * 1024;

export interface ControlOptions {
  protocol: Pick<ControlProtocol<string>, 'parties' | 'readers' | 'statuses'>;
  routes: readonly ControlRoute[];
  /** The route of the connections over which jobs ask their caller for archive objects. */
  channel?: ChannelRoute;
  /** The keys that verify the tokens of callers that change things. */
  keys: readonly KeyObject[];
  /** The keys that verify the tokens of callers that only read. Without these keys the agent accepts no readers. */
  readerKeys?: readonly KeyObject[] | undefined;
  log: Log;
  /** Rejects while this process cannot do its work. `/readyz` then answers 503. */
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

/**
 * Creates the HTTP server of the control protocol. Each call needs a token that is bound to it, except `/healthz` and
 * `/readyz`.
 */
export function createControlServer({
  protocol,
  routes,
  channel,
  keys,
  readerKeys,
  log,
  check,
}: ControlOptions): Server {
  // The ids of used tokens (`jti`) are remembered separately for each audience, because a caller numbers its tokens
  // from 1 for each audience.
  const [used, usedByReaders] = [rememberTokens(), rememberTokens()];
  const verify = (request: IncomingMessage, path: string): { claims: InternalClaims; isReader: boolean } => {
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const method = request.method ?? '';
    try {
      return { claims: verifyInternalToken(token, { keys, used, ...protocol.parties, method, path }), isReader: false };
    } catch (error) {
      if (readerKeys === undefined) throw error;
      const reader = { keys: readerKeys, used: usedByReaders, ...protocol.readers };
      return { claims: verifyInternalToken(token, { ...reader, method, path }), isReader: true };
    }
  };
  const authorise = async (request: IncomingMessage, path: string): Promise<{ body: Buffer; isReader: boolean }> => {
    const { claims, isReader } = verify(request, path);
    const body = await readBody(request);
    assertBound(claims, { body });
    return { body, isReader };
  };

  const answer = async (request: IncomingMessage): Promise<ControlAnswer> => {
    const path = request.url ?? '/';
    if (path === '/healthz') return { status: 200, body: { status: 'ok' } };
    if (path === '/readyz') return readiness(check);
    const { body, isReader } = await authorise(request, path);
    for (const route of routes) {
      const match = route.method === request.method ? route.pattern.exec(path) : null;
      if (!match) continue;
      if (isReader && route.readerAnswer === undefined)
        throw new HostError('readers_only_ask', `${request.method} ${path}`);
      const answered = await route.handle(match.slice(1).map(decodeURIComponent), parseBody(body));
      return isReader ? { ...answered, body: route.readerAnswer?.parse(answered.body) } : answered;
    }
    throw new HostError('unknown_route', `${request.method} ${path}`);
  };

  const refuse = (request: IncomingMessage, error: unknown): ControlAnswer => {
    const { code, message: detail } = refusalOf(error);
    if (code === 'internal') log.error({ err: error, path: request.url }, 'a control call failed');
    else log.info({ code, detail, path: request.url }, 'a control call was refused');
    return { status: protocol.statuses[code] ?? 500, body: { code, detail } };
  };

  /** Hands the socket to the job. No byte is lost, because the caller sends nothing before the job's first request. */
  const upgrade = async (request: IncomingMessage, socket: Socket, sent: Buffer): Promise<void> => {
    const path = request.url ?? '/';
    const { isReader } = await authorise(request, path);
    if (isReader) throw new HostError('readers_only_ask', path);
    const match = channel?.pattern.exec(path);
    if (!match || channel === undefined || request.headers.upgrade !== channelProtocol)
      throw new HostError('unknown_route', path);
    if (sent.length > 0) throw new HostError('invalid_request', 'bytes before the channel was open');
    const connect = (): void => channel.connect(match.slice(1).map(decodeURIComponent), socket);
    connect();
    socket.setNoDelay(true).setKeepAlive(true, 10_000).setTimeout(0);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${channelProtocol}\r\n\r\n`);
  };

  const server = createHttpServer((request, response) => {
    answer(request)
      .catch((error: unknown) => refuse(request, error))
      .then((answered) => send(response, answered))
      .catch((error: unknown) => log.error({ err: error }, 'an answer could not be sent'));
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, sent: Buffer) => {
    socket.on('error', () => undefined); // without a listener an error would end the process
    if (!(socket instanceof Socket)) {
      socket.destroy();
      return;
    }
    upgrade(request, socket, sent).catch((error: unknown) => {
      const { status, body } = refuse(request, error);
      const text = JSON.stringify(body);
      const head =
        `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}\r\nConnection: close\r\n` +
        'Content-Type: application/json';
      socket.end(`${head}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    });
  });
  return server;
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
  response.writeHead(
    status,
    body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
  );
  response.end(text);
}
