import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { closeServer, createHttpServer } from '@drydock/service-kit/http-server';
import { refuseUnparsed } from './client-error';
import { headersMax } from './hygiene';

/** Above the 15 s between the beats of an event stream; a client that takes nothing in for this long is gone. */
const idleMs = 75_000;

interface Connection {
  /** Requests that were read and have no answer yet. */
  unanswered: number;
}

/** Service-kit's server with what an edge needs beyond it. */
export function createGatewayServer(listener: RequestListener): Server {
  const connections = new WeakMap<Socket, Connection>();
  const remember = (socket: Socket): Connection => {
    const connection = { unanswered: 0 };
    connections.set(socket, connection);
    return connection;
  };
  const counted: RequestListener = (request, response) => {
    const connection = connections.get(request.socket) ?? remember(request.socket);
    connection.unanswered += 1;
    response.once('close', () => {
      connection.unanswered -= 1;
    });
    listener(request, response);
  };
  const server = createHttpServer(counted);
  server.maxHeadersCount = headersMax + 1;
  server.timeout = idleMs;
  // Without these Node would ask for a body that may be refused, and answer other expectations by itself.
  server.on('checkContinue', counted);
  server.on('checkExpectation', counted);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseUnparsed(error, socket, (connections.get(socket)?.unanswered ?? 0) > 0);
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
