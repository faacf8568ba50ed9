import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';

/** Answers a client whose request cannot be parsed or comes too slowly, and closes the connection. */
type Refuse = (error: NodeJS.ErrnoException, socket: Socket) => void;

const statusLines: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
};

const refuseAsNode: Refuse = (error, socket) => {
  const line = statusLines[error.code ?? ''] ?? '400 Bad Request';
  if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
  else socket.end(`HTTP/1.1 ${line}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
};

/**
 * Makes an HTTP server that withstands badly behaved clients. A request with its body may take `requestMs` milliseconds
 * to arrive. 0 means no limit, and the listener must then limit this time. `connectionsCheckingInterval` matters as
 * much as the timeouts: at its default of 30 s a slowloris connection lives for half a minute, whatever
 * `headersTimeout` is.
 */
export function createHttpServer(
  listener: RequestListener,
  { requireHostHeader = true, requestMs = 10_000, refuse = refuseAsNode } = {},
): Server {
  const server = createServer(
    {
      headersTimeout: 5_000,
      requestTimeout: requestMs,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 16_384,
      requireHostHeader,
    },
    listener,
  );
  server.maxHeadersCount = 100;
  trackSockets(server);
  refuseUnparsed(server, refuse);
  return server;
}

/**
 * Refuses requests that cannot be parsed or come too late. A busy process with thousands of connections reads late, and
 * Node would answer 408 to clients whose requests wait in the kernel. So a late client is refused only if one more turn
 * of the event loop neither begins nor completes a request of this client.
 */
function refuseUnparsed(server: Server, refuse: Refuse): void {
  const newest = new WeakMap<Socket, IncomingMessage>();
  server.prependListener('request', (request) => void newest.set(request.socket, request));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
      refuse(error, socket);
      return;
    }
    const before = newest.get(socket);
    const wasComplete = before?.complete;
    setImmediate(() => {
      const now = newest.get(socket);
      if (now === before && now?.complete === wasComplete && !socket.destroyed) refuse(error, socket);
    });
  });
}

/**
 * The most requests that may wait behind an unanswered request of the same connection. A client that sends more loses
 * its connection, to save memory.
 */
const aheadMax = 32;

/**
 * Makes a listener that gets the requests of each connection one after another. A response has no socket until the
 * responses before it are sent. Node does not close a response without a socket when the client leaves, so a request
 * that was handled too early would never give its place back. `unanswered` counts each connection's requests that were
 * read and have no answer yet.
 */
export function inTurn(listener: RequestListener, unanswered = new WeakMap<Socket, number>()): RequestListener {
  return (request, response) => {
    const { socket } = request;
    const count = (unanswered.get(socket) ?? 0) + 1;
    unanswered.set(socket, count);
    if (count > aheadMax + 1) {
      socket.destroy();
      return;
    }
    response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    if (response.socket === null) response.once('socket', () => listener(request, response));
    else listener(request, response);
  };
}

/**
 * The most connections that the kernel has accepted and this process has not; `net.core.somaxconn` limits them too.
 * Node's default is 511. Above the limit the kernel drops packets, including the first request of a client that
 * believes it is connected. The client sends that request again seconds later, too late for `headersTimeout`.
 */
const backlog = 4_096;

/** Listens on the port, or on a free one if `port` is 0. Resolves with the address. */
export function listen(server: Server, port: number, host = '127.0.0.1'): Promise<{ url: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog }, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
      resolve({ url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`, port: address.port });
    });
  });
}

const idleSweepMs = 50;
/** Milliseconds for which a connection that has sent nothing yet may still send a request while the server closes. */
const silentGraceMs = 1_000;

/**
 * Waits until no connection is open, at most for `withinMs`. It closes no connection, because a request may be on its
 * way on a connection that looks idle.
 */
export async function waitUntilNobodyIsConnected(server: Server, withinMs: number): Promise<void> {
  const endsAtMs = performance.now() + withinMs;
  while (performance.now() < endsAtMs && openSockets.get(server)?.size !== 0) await wait(idleSweepMs);
}

/**
 * Stops accepting connections and waits for running requests. Idle connections are closed repeatedly: a connection
 * whose last answer is sent after `close` would stay open for its whole keep-alive. A connection that has sent nothing
 * is closed after a second, because Node counts it as busy for ever.
 */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), idleSweepMs);
    const dropSilent = setTimeout(() => {
      for (const socket of openSockets.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy();
    }, silentGraceMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(dropSilent);
      resolve();
    });
  });
}

const openSockets = new WeakMap<Server, Set<Socket>>();

function trackSockets(server: Server): void {
  const open = new Set<Socket>();
  openSockets.set(server, open);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
}
