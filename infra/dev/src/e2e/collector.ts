import http from 'node:http';
import { listen } from '@drydock/service/http';
import { readMetricNames, readSpans, type Span } from '../traces/otlp';

export interface Collector {
  url: string;
  spans: Span[];
  /** The names of the received metrics, as Prometheus would write them. */
  metrics: Set<string>;
  /** The paths at which something was received, such as `/v1/traces`. */
  paths: Set<string>;
  /** Returns all bodies as they were received. */
  raw(): string;
  close(): void;
}

/** Starts a collector (OTLP/HTTP) that keeps everything that the processes of a stack send. */
export async function startCollector(): Promise<Collector> {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const paths = new Set<string>();
  const metrics = new Set<string>();
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      response.end('{}');
      paths.add(request.url ?? '');
      bodies.push(body);
      if (request.url === '/v1/traces') spans.push(...readSpans(body));
      if (request.url === '/v1/metrics') for (const name of readMetricNames(body)) metrics.add(name);
    });
  });
  const { url } = await listen(server, 0);
  return { url, spans, metrics, paths, raw: () => bodies.join('\n'), close: () => server.close() };
}
