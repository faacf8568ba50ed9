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
  /** The password of the board's readers, as hex. Any user name is accepted. */
  token: string;
}

const boardPath = '/queues';

/** The board has its own scripts. It also asks Google for a font, which would learn who looks at it. */
const pageHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
    "font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/**
 * Bull Board for a service's two queues, at {@link boardPath} of a worker's port. It is read-only: the record of all
 * work is in Postgres, so removing or repeating a job by hand would only confuse. A job contains the ids of its
 * workflow and organisation, and a trace's.
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
      // Bull Board refuses changes too, queue by queue; this check does not depend on its idea of a change.
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

/** @throws while a queue has not been reached yet */
function mountBoard(queues: readonly OpenedQueue[], log: QueueAddress['log']): RequestListener {
  const adapter = new ExpressAdapter();
  adapter.setBasePath(boardPath);
  createBullBoard({
    queues: queues.map((opened) => new BullMQAdapter(opened.queue(), { readOnlyMode: true, allowRetries: false })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'Drydock: queues', hideRedisDetails: true } },
  });
  // The board's own error handler would show the driver's message, which may contain a host and a user.
  adapter.setErrorHandler((error) => {
    log.warn({ internal: messageOf(error) }, 'queue board');
    return { status: 500, body: { error: 'the queue could not be read' } };
  });
  const app = adapter.getRouter();
  app.disable('x-powered-by');
  return app;
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** A browser asks its user and sends `Basic`; a command may send `Bearer`. */
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
