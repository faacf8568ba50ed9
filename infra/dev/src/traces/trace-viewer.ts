import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeServer, createHttpServer, listen } from '@drydock/service/http';
import { readSpans } from './otlp';
import { listPage, missingPage, tracePage } from './trace-page';
import { createTraceStore, type TraceStore } from './trace-store';

/** The most bytes of a request. A process usually sends far fewer: at most 512 spans of about 2 kB, which is 1 MB. */
const bodyBytesMax = 16 * 2 ** 20;

export interface TraceViewer {
  /** The URL to which processes send spans, and at which people look at them. */
  url: string;
  close(): Promise<void>;
}

/**
 * Starts a collector (OTLP/HTTP as JSON) on the loopback address. It keeps the last few hundred traces in memory and
 * shows them as waterfalls. It listens on `port`, by default the standard port of OTLP/HTTP, or on a free port if
 * another program listens there.
 */
export async function startTraceViewer(port = 4_318): Promise<TraceViewer> {
  const store = createTraceStore();
  const server = createHttpServer((request, response) => {
    answer(store, request, response).catch((error: unknown) =>
      send(response, 400, 'text/plain', `${error instanceof Error ? error.message : String(error)}\n`),
    );
  });
  const { url } = await listen(server, port).catch(() => listen(server, 0));
  return { url, close: () => closeServer(server) };
}

async function answer(store: TraceStore, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // The check of the Host header prevents DNS rebinding, by which a page on the internet could read the traces.
  if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/.test(request.headers.host ?? ''))
    return send(response, 403, 'text/plain', 'Call it 127.0.0.1\n');
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
  if (request.method === 'POST') {
    const body = await readBody(request);
    if (pathname === '/v1/traces') store.add(readSpans(body));
    return send(response, 200, 'application/json', '{}');
  }
  if (pathname === '/') {
    const text = searchParams.get('q')?.trim() ?? '';
    return send(response, 200, 'text/html', listPage(store.find(text), text));
  }
  const trace = store.get(pathname.replace('/traces/', ''));
  return trace === undefined
    ? send(response, 404, 'text/html', missingPage())
    : send(response, 200, 'text/html', tracePage(trace));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new Error(`The body is larger than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    'cache-control': 'no-store',
  });
  response.end(text);
}
