import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeServer, createHttpServer, listen } from '@drydock/service/http';
import { readSpans } from './otlp';
import { listPage, missingPage, tracePage } from './trace-page';
import { createTraceStore, type TraceStore } from './trace-store';

/** The limit is generous, because a process sends at most 512 spans of about 2 kB at a time. */
const bodyBytesMax = 16 * 2 ** 20;

export interface TraceViewer {
  /** The address to which processes send spans, and at which people read them. */
  url: string;
  close(): Promise<void>;
}

/**
 * Starts a collector (OTLP/HTTP as JSON) on this machine, which shows the last few hundred traces as waterfalls. The
 * traces are kept in memory. The collector listens on `port`, whose default is the port of OTLP. If another program
 * uses that port, the collector takes a free port.
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
  // Checking the host header prevents DNS rebinding: a page of another site must not read the traces.
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
