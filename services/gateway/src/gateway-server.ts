import { randomUUID } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { Shares } from '@drydock/service/access';
import { createHttpServer, inTurn } from '@drydock/service/http';
import { addressGroup } from './address';
import { headersMax } from './hygiene';

const problemOfCode = (code: string | undefined): Problem => {
  if (code === 'HPE_HEADER_OVERFLOW') return problem('headers_too_large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return problem('request_timeout');
  return problem('malformed_request');
};

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/**
 * Answers input that never became a request, and closes the connection. Either Node's parser has refused the input, or
 * the input did not arrive in time. If another request of the connection is unanswered, nothing is sent, because the
 * client would take the refusal for the answer to that request.
 */
function refuseUnparsed(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  headers: readonly string[],
  isBusy: boolean,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isBusy) {
    socket.destroy();
    return;
  }
  const refusal = problemOfCode(error.code);
  const requestId = randomUUID();
  const text = JSON.stringify(refusal.body(requestId));
  const head = [
    `HTTP/1.1 ${refusal.status} ${reasons[refusal.status] ?? ''}`,
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    `X-Request-Id: ${requestId}`,
    ...headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ''}`] : [])),
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}

/**
 * Milliseconds without traffic after which a connection is closed. They exceed the 15 s between the heartbeats of an
 * event stream.
 */
const idleMs = 75_000;

/**
 * The gateway's HTTP server, with the limits that a public server needs. `open` limits the connections, in all and by
 * address. `unparsedHeaders` are sent with the answers to input that could not be parsed as a request, as alternating
 * names and values.
 */
export function createGatewayServer(
  listener: RequestListener,
  open: Shares,
  unparsedHeaders: readonly string[],
): Server {
  const unanswered = new WeakMap<Socket, number>();
  // The gateway refuses a request without Host itself, because Node's own 400 has neither body nor request id.
  const server = createHttpServer(inTurn(listener, unanswered), {
    requireHostHeader: false,
    refuse: (error, socket) => refuseUnparsed(error, socket, unparsedHeaders, (unanswered.get(socket) ?? 0) > 0),
  });
  server.maxHeadersCount = headersMax + 1;
  server.timeout = idleMs;
  // A connection costs memory and a file descriptor before it sends anything, so a connection beyond the limit is
  // closed at once.
  server.prependListener('connection', (socket: Socket) => {
    const holders = [addressGroup(socket.remoteAddress)];
    if (open.take(holders)) socket.once('close', () => open.giveBack(holders));
    else socket.destroy();
  });
  // Without these listeners Node itself would answer the Expect header. Node would ask the client for a body that may
  // be refused, or would refuse the expectation.
  for (const event of ['checkContinue', 'checkExpectation'] as const)
    server.on(event, (...exchange) => server.emit('request', ...exchange));
  return server;
}
