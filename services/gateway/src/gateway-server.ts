import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { closeServer, createHttpServer } from '@drydock/service-kit/http-server';
import { refuseUnparsed } from './client-error';
import { headersMax } from './hygiene';

/** Above the 15 s between the beats of an event stream; a client that takes nothing in for this long is gone. */
const idleMs = 75_000;

/** Service-kit's server with what an edge needs beyond it. */
export function createGatewayServer(listener: RequestListener): Server {
  const unanswered = new WeakMap<Socket, number>();
  const count = (socket: Socket, change: number): void => {
    unanswered.set(socket, (unanswered.get(socket) ?? 0) + change);
  };
  const counted: RequestListener = (request, response) => {
    const { socket } = request;
    count(socket, 1);
    response.once('close', () => count(socket, -1));
    listener(request, response);
  };
  const server = createHttpServer(counted);
  server.maxHeadersCount = headersMax + 1;
  server.timeout = idleMs;
  // Without these Node would ask for a body that may be refused, and answer other expectations by itself.
  server.on('checkContinue', counted);
  server.on('checkExpectation', counted);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseUnparsed(error, socket, (unanswered.get(socket) ?? 0) > 0);
  });
  return server;
}

/**
 * Ends a server under load without cutting anybody off: for `drainMs` it goes on answering, each answer with `Connection: close`, so that
 * clients leave by themselves; only then it stops listening and closes the connections on which nothing happens.
 */
export async function drainServer(server: Server, drainMs: number): Promise<void> {
  await wait(drainMs);
  await closeServer(server);
}
