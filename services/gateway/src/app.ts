import type { RequestListener } from 'node:http';
import { problem } from '@drydock/contracts/problem';
import { answerHealth, answerReady, type ReadyChecks } from '@drydock/service-kit/health';
import type { Log } from '@drydock/service-kit/log';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { docsPage, openApiText } from './docs-page';
import { openExchange } from './exchange';
import { assertClean } from './hygiene';
import { type Page, sendPage } from './page';
import type { Handle } from './pipeline';
import { problemIndexPage, problemPage } from './problem-page';
import { refuse } from './refuse';

export interface AppKit {
  handle: Handle;
  ready: ReadyChecks;
  log: Log;
  isClosing(): boolean;
}

const apiPrefix = '/v1/';

/** The API, and Express for all around it. Measured: Express in front of the pipeline costs a tenth of a request, and it has nothing to do there. */
export function createListener(kit: AppKit): RequestListener {
  const app = createApp(kit);
  return (request, response) => {
    if (request.url?.startsWith(apiPrefix)) kit.handle(request, response);
    else app(request, response);
  };
}

function createApp(kit: AppKit): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('case sensitive routing');
  app.enable('strict routing');
  mount(app, kit, '/healthz', async () => pageOfAnswer(answerHealth()));
  mount(app, kit, '/readyz', async () => pageOfAnswer(await answerReady(kit.ready, kit.isClosing(), kit.log)));
  mount(app, kit, '/openapi.json', async () => ({ status: 200, contentType: 'application/json', text: openApiText() }));
  mount(app, kit, '/docs', async () => docsPage());
  mount(app, kit, '/problems', async (request) => problemIndexPage(request.headers.accept));
  mount(app, kit, '/problems/:code', async (request) => problemPage(String(request.params['code']), request.headers.accept));
  // What is left is answered as every unknown path of the API is.
  app.use((request, response) => kit.handle(request, response));
  // Only the router itself gets here, for a path that is not percent-encoded as it should be; Express would show its stack.
  const refuseBrokenPath: ErrorRequestHandler = (error: unknown, request, response, _next) =>
    refuse(openExchange(request, response), error instanceof URIError ? problem('route_not_found') : error, kit.isClosing());
  app.use(refuseBrokenPath);
  return app;
}

const pageOfAnswer = ({ status, text }: { status: number; text: string }): Page => ({ status, contentType: 'application/json', text });

/** Pages need no key, count against no quota and take no place. */
function mount(app: Express, kit: AppKit, path: string, make: (request: Parameters<RequestHandler>[0]) => Promise<Page>): void {
  app.all(path, async (request, response) => {
    const exchange = openExchange(request, response);
    try {
      assertClean(request);
      if (request.method !== 'GET' && request.method !== 'HEAD') throw problem('method_not_allowed', { extra: { allow: 'GET, HEAD' } });
      sendPage(exchange, await make(request), kit.isClosing());
    } catch (error) {
      refuse(exchange, error, kit.isClosing());
    }
  });
}
