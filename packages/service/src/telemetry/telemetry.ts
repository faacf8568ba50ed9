import type { ContinuedTraces, RequestTraces } from './request-traces';

/**
 * Telemetry, which starts when this file is loaded. If no variable names a collector or a port, the SDK is not even
 * read from disk, which saves about 300 ms and 40 MB in each process.
 * - OTEL_EXPORTER_OTLP_ENDPOINT names a collector. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and
 *   OTEL_EXPORTER_OTLP_METRICS_ENDPOINT name one for spans and one for metrics.
 * - OTEL_EXPORTER_PROMETHEUS_PORT is the port of `/metrics`, at OTEL_EXPORTER_PROMETHEUS_HOST (127.0.0.1).
 * - TRACE_READS, TRACE_SLOW_MS and TRACE_DETAIL (`process/config.ts`) decide which spans are sent.
 * - DRYDOCK_VERSION and NODE_ENV are sent with each span, unless OTEL_RESOURCE_ATTRIBUTES has other values.
 */
type Sdk = ReturnType<typeof import('./telemetry-sdk').startSdk>;

function start(): Sdk | undefined {
  const given = (name: string): string | null => process.env[name] || null;
  // These rules are OpenTelemetry's own. An address for traces or for metrics overrides the base address of both. If
  // the exporter of traces or of metrics is `none`, these are not sent.
  const addressOf = (kind: 'traces' | 'metrics'): string | null => {
    const base = given('OTEL_EXPORTER_OTLP_ENDPOINT')?.replace(/\/+$/, '') ?? null;
    if (given('OTEL_SDK_DISABLED') === 'true' || given(`OTEL_${kind.toUpperCase()}_EXPORTER`) === 'none') return null;
    return given(`OTEL_EXPORTER_OTLP_${kind.toUpperCase()}_ENDPOINT`) ?? (base === null ? null : `${base}/v1/${kind}`);
  };
  const [tracesUrl, metricsUrl] = [addressOf('traces'), addressOf('metrics')];
  const port = given('OTEL_EXPORTER_PROMETHEUS_PORT');
  if (tracesUrl === null && metricsUrl === null && port === null) return undefined;
  const sdk: typeof import('./telemetry-sdk') = require('./telemetry-sdk');
  const metrics =
    port === null ? null : { port: Number(port), host: given('OTEL_EXPORTER_PROMETHEUS_HOST') ?? '127.0.0.1' };
  return sdk.startSdk({
    tracesUrl,
    metricsUrl,
    metrics,
    serviceName: given('SERVICE_NAME') ?? 'unknown',
    serviceVersion: given('DRYDOCK_VERSION') ?? 'unreleased',
    environment: given('NODE_ENV') ?? 'development',
    // A value that is not a number needs no check here, because the process refuses it when it reads its settings.
    sampling: { readShare: Number(given('TRACE_READS') ?? 0.05), slowMs: Number(given('TRACE_SLOW_MS') ?? 1_000) },
  });
}

const running = start();

/**
 * Begins the traces of requests. It is for the process that customers reach, which decides about the sampling of reads.
 * The caller's `traceparent` becomes only a link. As a parent, it could name a trace of Drydock and turn off the
 * recording of that trace. Must be called before the first request. Undefined while telemetry is off.
 */
export const beginTraces = (): RequestTraces | undefined => running?.beginTraces();

/**
 * Continues the traces of requests that the gateway has begun. It is for services. Must be called before the first
 * request. Undefined while telemetry is off.
 */
export const continueTraces = (): ContinuedTraces | undefined => running?.continueTraces();

/**
 * Sends the spans that are still to be sent, for at most 2 s, because a dead collector must not delay the exit. It is
 * the last phase of a shutdown.
 */
export const stopTelemetry = async (): Promise<void> => {
  await running?.stop();
};
