import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import type { Mounted } from '@drydock/service/http';
import { messageOf } from '../definition/step-error';
import { type OpenedQueue, openBullQueue, type QueueAddress, queueKinds, queueNameOf } from '../dispatch/queue';

export interface QueueBoard extends Mounted {
  close(): Promise<void>;
}

interface QueueBoardOptions extends QueueAddress {
  /** The password for the board, as hex. Any user name is accepted. */
  token: string;
}

const boardPath = '/queues';

/**
 * The headers of the board's pages. The policy allows the board's own scripts. It refuses the font that the board
 * requests from Google, because Google would learn who uses the board.
 */
const pageHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * Bull Board for a service's two queues, at {@link boardPath} of a worker's port. It is read-only. The record of all
 * work is in Postgres, so removing or repeating a job by hand would only confuse. A job contains only the ids of its
 * workflow, its organisation and its trace.
 */
export function createQueueBoard({ token, ...address }: QueueBoardOptions): QueueBoard {
  const queues = queueKinds.map((kind) =>
    openBullQueue({ ...address, queueName: queueNameOf(address.queueName, kind) }),
  );
  const expected = digestOf(token);
  let board: RequestListener | undefined;
  return {
    path: boardPath,
    handle: (request, response) => {
      for (const [name, value] of Object.entries(pageHeaders)) response.setHeader(name, value);
      if (!timingSafeEqual(digestOf(passwordOf(request)), expected))
        return refuse(response, 401, 'the token of the board is missing or wrong');
      // Bull Board itself refuses only the changes that it recognises.
      if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(response, 405, 'the board is read-only');
      try {
        board ??= mountBoard(queues, address.log);
      } catch (error) {
        address.log.warn({ internal: messageOf(error) }, 'queue board');
        return refuse(response, 503, 'the queue has not been reached yet');
      }
      request.url = request.url?.slice(boardPath.length) || '/';
      board(request, response);
    },
    close: async () => {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}

/** Mounts the board. @throws until all queues have been reached */
function mountBoard(queues: readonly OpenedQueue[], log: QueueAddress['log']): RequestListener {
  const adapter = new ExpressAdapter();
  adapter.setBasePath(boardPath);
  createBullBoard({
    queues: queues.map((opened) => new BullMQAdapter(opened.queue(), { readOnlyMode: true, allowRetries: false })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'Drydock: queues', hideRedisDetails: true } },
  });
  // The board's own error handler would show the driver's message, which may contain a host name and a user name.
  adapter.setErrorHandler((error) => {
    log.warn({ internal: messageOf(error) }, 'queue board');
    return { status: 500, body: { error: 'the queue could not be read' } };
  });
  const app = adapter.getRouter();
  app.disable('x-powered-by');
  return app;
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** The password of a request. A browser asks its user and sends `Basic`; a program may send `Bearer`. */
function passwordOf({ headers }: IncomingMessage): string {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(' ');
  if (scheme.toLowerCase() === 'bearer') return credentials;
  if (scheme.toLowerCase() !== 'basic') return '';
  const pair = Buffer.from(credentials, 'base64').toString();
  return pair.slice(pair.indexOf(':') + 1);
}

function refuse(response: ServerResponse, status: 401 | 405 | 503, error: string): void {
  const more = {
    401: { 'www-authenticate': 'Basic realm="Drydock queues", charset="UTF-8"' },
    405: { allow: 'GET, HEAD' },
    503: {},
  }[status];
  response.writeHead(status, { ...more, 'content-type': 'application/json' }).end(JSON.stringify({ error }));
}
