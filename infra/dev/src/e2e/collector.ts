import http from 'node:http';
import { listen } from '@drydock/service/http/http-server';
import { z } from 'zod';

const attributeSchema = z.looseObject({ key: z.string(), value: z.looseObject({ stringValue: z.string().optional() }) });
const spanSchema = z.looseObject({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
});
const exportSchema = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(attributeSchema) }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(spanSchema) })),
    }),
  ),
});

export interface Span extends z.infer<typeof spanSchema> {
  service: string;
}

export interface Collector {
  url: string;
  spans: Span[];
  /** Where something was sent to: `/v1/traces`, `/v1/metrics`. */
  paths: Set<string>;
  /** Everything that was sent, as it was sent. */
  raw(): string;
  close(): void;
}

/** A collector that keeps what real processes export by OTLP/HTTP. */
export async function startCollector(): Promise<Collector> {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const paths = new Set<string>();
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      response.end('{}');
      paths.add(request.url ?? '');
      bodies.push(body);
      if (request.url !== '/v1/traces') return;
      spans.push(...readSpans(body));
    });
  });
  const { url } = await listen(server, 0);
  return { url, spans, paths, raw: () => bodies.join('\n'), close: () => server.close() };
}

function readSpans(body: string): Span[] {
  return exportSchema.parse(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '';
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ ...span, service })));
  });
}
