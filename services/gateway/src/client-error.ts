import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { type Problem, problem } from '@drydock/contracts/platform/problem';

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
 * Answers input that never became a request (Node's parser refused it, or it did not come in time) and closes the
 * connection. If another request of the connection is unanswered, it sends nothing: the client would take it for that
 * one's answer.
 */
export function refuseUnparsed(
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
