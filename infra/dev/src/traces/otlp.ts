import { z } from 'zod';

const valueSchema = z.looseObject({
  stringValue: z.string().optional(),
  intValue: z.union([z.string(), z.number()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
});
const attributesSchema = z.array(z.looseObject({ key: z.string(), value: valueSchema })).default([]);
const spanSchema = z.looseObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int().default(0),
  startTimeUnixNano: z.coerce.bigint(),
  endTimeUnixNano: z.coerce.bigint(),
  attributes: attributesSchema,
  status: z.looseObject({ code: z.int().optional() }).default({}),
});
const tracesSchema = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: attributesSchema }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(spanSchema) })),
    }),
  ),
});

const metricSchema = z.looseObject({
  name: z.string(),
  sum: z.looseObject({ isMonotonic: z.boolean().optional() }).optional(),
  histogram: z.unknown().optional(),
});
const metricsSchema = z.looseObject({
  resourceMetrics: z.array(z.looseObject({ scopeMetrics: z.array(z.looseObject({ metrics: z.array(metricSchema) })) })),
});

export interface Span {
  traceId: string;
  spanId: string;
  /** The id of the parent. Undefined for the root of a trace. */
  parentSpanId: string | undefined;
  name: string;
  /** OpenTelemetry's SpanKind as OTLP encodes it: 2 is the server of a call, and 3 is the client. */
  kind: number;
  /** The name of the process, such as `hosting-worker`. */
  service: string;
  pid: string;
  startMs: number;
  durationMs: number;
  hasFailed: boolean;
  attributes: Readonly<Record<string, string>>;
}

/** Reads the spans in the body of `POST /v1/traces` (OTLP/HTTP as JSON). @throws if the body is not of this format */
export function readSpans(body: string): Span[] {
  return tracesSchema.parse(JSON.parse(body)).resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const about = textOf(resource.attributes);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ parentSpanId, startTimeUnixNano, endTimeUnixNano, status, ...span }) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: parentSpanId === '' ? undefined : parentSpanId,
        name: span.name,
        kind: span.kind,
        service: about['service.name'] ?? '',
        pid: about['process.pid'] ?? '',
        startMs: Number(startTimeUnixNano / 1_000n) / 1_000,
        durationMs: Number(endTimeUnixNano - startTimeUnixNano) / 1_000_000,
        hasFailed: status.code === 2,
        attributes: textOf(span.attributes),
      })),
    );
  });
}

/** Reads the names of the metrics in the body of `POST /v1/metrics`. Returns them as Prometheus would write them. */
export function readMetricNames(body: string): string[] {
  const sent = metricsSchema
    .parse(JSON.parse(body))
    .resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  return sent.flatMap(({ name, sum, histogram }) => {
    const plain = name.replaceAll('.', '_');
    if (histogram !== undefined) return ['_bucket', '_count', '_sum'].map((part) => `${plain}${part}`);
    return [sum?.isMonotonic === true ? `${plain}_total` : plain];
  });
}

const textOf = (attributes: z.infer<typeof attributesSchema>): Record<string, string> =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      String(value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue ?? ''),
    ]),
  );
