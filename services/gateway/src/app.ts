import type { RequestListener } from 'node:http';
import type { BlockList } from 'node:net';
import { problem } from '@drydock/contracts/platform/problem';
import type { Shares } from '@drydock/service/access';
import { answerHealth, answerReady, hasAlready } from '@drydock/service/http';
import type { ReadyChecks } from '@drydock/service/process';
import type { Log } from '@drydock/service/telemetry';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { addressGroup, clientAddress } from './address';
import { answerOptions, type Exchange, headOf, openExchange, refuse } from './exchange';
import { assertClean } from './hygiene';
import { guideIndexPage, guidePage } from './pages/guides';
import type { Page } from './pages/page';
import { problemIndexPage, problemPage } from './pages/problems';
import { frontPage, openApiPage, pageFiles, referencePage } from './pages/reference';
import type { Handle } from './pipeline';
import type { Quotas } from './quota';

export interface AppKit {
  handle: Handle;
  checks: { needed: ReadyChecks; informative: ReadyChecks };
  /**
   * Limits the documents that are being sent, in all and to one address. A client that requests many documents and
   * reads none uses up only the share of its own address.
   */
  pages: Shares;
  /** The trusted proxies in front of the gateway; see {@link clientAddress}. */
  proxies: BlockList | undefined;
  log: Log;
  quotas: Quotas;
  isClosing(): boolean;
}

const apiPrefix = '/v1/';

/**
 * Passes calls of the API to the pipeline, and all other requests to Express. Express before the pipeline would do
 * nothing for a call and add a tenth to its cost (measured).
 */
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
  mount(app, kit, '/readyz', async () =>
    pageOfAnswer(await answerReady(kit.checks.needed, kit.isClosing(), kit.log, kit.checks.informative)),
  );
  mountDocument(app, kit, '/', async (request) => frontPage(request.headers.accept));
  mountDocument(app, kit, '/openapi.json', openApiPage);
  mountDocument(app, kit, '/docs', referencePage);
  for (const [path, make] of Object.entries(pageFiles)) mountDocument(app, kit, path, make);
  mountDocument(app, kit, '/docs/guides', guideIndexPage);
  mountDocument(app, kit, '/docs/guides/:name', async (request) => guidePage(String(request.params['name'])));
  mountDocument(app, kit, '/problems', async (request) => problemIndexPage(request.headers.accept));
  mountDocument(app, kit, '/problems/:code', async (request) =>
    problemPage(String(request.params['code']), request.headers.accept),
  );
  // All other paths are answered like any unknown path of the API.
  app.use((request, response) => kit.handle(request, response));
  // The router fails only for a path with wrong percent-encoding. The answer of Express would show a stack trace.
  const refuseBrokenPath: ErrorRequestHandler = (error: unknown, request, response, _next) =>
    refuse(
      openExchange(request, response, kit.quotas),
      error instanceof URIError ? problem('route_not_found') : error,
      kit.isClosing(),
    );
  app.use(refuseBrokenPath);
  return app;
}

const pageOfAnswer = ({ status, text }: { status: number; text: string }): Page => ({
  status,
  contentType: 'application/json',
  text,
});

type MakePage = (request: Parameters<RequestHandler>[0]) => Promise<Page>;

/** The milliseconds that a client has to receive a document. A client that takes longer is not reading it. */
const documentMs = 30_000;

/**
 * Mounts a document. Documents are large and need no key, so the number of documents that are sent at a time is
 * limited, and the time for each document too.
 */
function mountDocument(app: Express, kit: AppKit, path: string, make: MakePage): void {
  mount(app, kit, path, async (request) => {
    const holders = [addressGroup(clientAddress(request, kit.proxies))];
    if (!kit.pages.take(holders)) throw problem('overloaded', { retryAfterSeconds: 5 });
    const { res: response } = request;
    const deadline = setTimeout(() => response?.destroy(), documentMs);
    response?.once('close', () => {
      clearTimeout(deadline);
      kit.pages.giveBack(holders);
    });
    return make(request);
  });
}

const pageMethods = 'GET, HEAD, OPTIONS';

/** Mounts a page. A page needs no key, and counts neither against a quota nor as a call in progress. */
function mount(app: Express, kit: AppKit, path: string, make: MakePage): void {
  app.all(path, async (request, response) => {
    const exchange = openExchange(request, response, kit.quotas);
    try {
      assertClean(request);
      if (request.method === 'OPTIONS') return answerOptions(exchange, pageMethods, kit.isClosing());
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw problem('method_not_allowed', { extra: { allow: pageMethods } });
      sendPage(exchange, await make(request), kit.isClosing());
    } catch (error) {
      refuse(exchange, error, kit.isClosing());
    }
  });
}

const strictPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function sendPage(exchange: Exchange, page: Page, isClosing: boolean): void {
  const { method, headers } = exchange.request;
  const kept = page.kept;
  const own = ['Content-Security-Policy', page.contentPolicy ?? strictPolicy, 'X-Content-Type-Options', 'nosniff'];
  own.push('Referrer-Policy', 'no-referrer', 'Vary', 'Accept, Accept-Encoding');
  own.push('Cache-Control', kept === undefined ? 'no-store' : 'no-cache');
  if (page.location !== undefined) own.push('Location', page.location);
  if (kept !== undefined) own.push('ETag', kept.etag);
  if (kept !== undefined && hasAlready(headers['if-none-match'], kept.etag)) {
    exchange.response.writeHead(304, headOf(exchange, isClosing, own));
    exchange.response.end();
    return;
  }
  const encoding = kept === undefined ? undefined : encodingFor(headers['accept-encoding']);
  const body = encoding === undefined ? page.text : (kept?.[encoding] ?? page.text);
  own.push('Content-Type', page.contentType, 'Content-Length', String(Buffer.byteLength(body)));
  if (encoding !== undefined) own.push('Content-Encoding', encoding);
  exchange.response.writeHead(page.status, headOf(exchange, isClosing, own));
  exchange.response.end(method === 'HEAD' ? undefined : body);
}

/** The smallest encoding that the client accepts. */
function encodingFor(accepted: string | string[] | undefined): 'br' | 'gzip' | undefined {
  const taken = String(accepted ?? '')
    .toLowerCase()
    .split(',')
    .flatMap((one) => {
      const [name = '', ...parameters] = one.split(';').map((part) => part.trim());
      return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [name];
    });
  return (['br', 'gzip'] as const).find((name) => taken.includes(name));
}
