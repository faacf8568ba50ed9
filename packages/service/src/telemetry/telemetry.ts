/**
 * Preload: `node --require @drydock/service/telemetry/telemetry …`, before anything that is instrumented is loaded.
 * Without OTEL_EXPORTER_OTLP_ENDPOINT the SDK is not even read from disk (about 300 ms and 40 MB saved per process).
 */
type Sdk = ReturnType<typeof import('./telemetry-sdk').startSdk>;

function start(): Sdk | undefined {
  const endpoint = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  if (endpoint === undefined || endpoint === '') return undefined;
  const sdk: typeof import('./telemetry-sdk') = require('./telemetry-sdk');
  return sdk.startSdk({ endpoint, serviceName: process.env['SERVICE_NAME'] ?? 'unknown' });
}

const running = start();

/**
 * For the process that customers reach: their `traceparent` would name our traces and switch their recording off, and begins none of ours. Call it before
 * the first request.
 */
export const ignoreClientTraces = (): void => running?.ignoreIncoming();

/** Sends what is still held back, for at most 2 s: a dead collector must not hold up an exit. The last phase of a shutdown. */
export const stopTelemetry = async (): Promise<void> => {
  await running?.stop();
};
