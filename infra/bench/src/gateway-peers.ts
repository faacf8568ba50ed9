// A process for the benchmarks of the gateway. ROLE chooses the trivial upstream, a stub of the keys service that
// accepts every key, a bare proxy, or a collector of telemetry.
import http from 'node:http';
import express from 'express';
import { createProxyServer } from 'http-proxy-3';
import { createProxyMiddleware } from 'http-proxy-middleware';

const body = Buffer.from(
  JSON.stringify({ data: Array.from({ length: 10 }, (_, number) => ({ id: number, name: `site ${number}` })) }),
);
const verification = Buffer.from(
  JSON.stringify({
    valid: true,
    key_id: '01890a5d-ac96-774b-bcce-b302099a8057',
    org_id: '01890a5d-ac96-774b-bcce-b302099a8058',
    mode: 'live',
    scopes: ['sites.view'],
  }),
);
const answering =
  (bytes: Buffer): http.RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length });
    response.end(bytes);
  };

/**
 * Discards spans and metrics. Answers them after `answerMs` milliseconds, or never if `answerMs` is null. A GET, such
 * as the one for /healthz, is answered at once.
 */
const collecting =
  (answerMs: number | null): http.RequestListener =>
  (request, response) => {
    request.resume();
    if (request.method === 'GET') response.end();
    else if (answerMs !== null)
      setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'), answerMs);
  };

const upstream = process.env['UPSTREAM'] ?? '';
const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
const roles: Record<string, () => http.RequestListener> = {
  upstream: () => answering(body),
  keys: () => answering(verification),
  collector: () => collecting(0),
  // A process of Drydock waits at most 3 s for a collector, so this answer arrives in time.
  'slow-collector': () => collecting(2_000),
  'hanging-collector': () => collecting(null),
  'http-proxy-3': () => {
    const proxy = createProxyServer({ target: upstream, agent });
    return (request, response) => proxy.web(request, response);
  },
  'http-proxy-middleware': () => express().use(createProxyMiddleware({ target: upstream, agent })),
};

const role = roles[process.env['ROLE'] ?? ''];
if (role === undefined) throw new Error('ROLE names no process of this benchmark');
http.createServer(role()).listen(Number(process.env['PORT']), '127.0.0.1');
