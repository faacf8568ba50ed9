/**
 * Preload: `node --require @drydock/service-kit/telemetry …`, before anything that is instrumented is loaded.
 * Without OTEL_EXPORTER_OTLP_ENDPOINT the SDK is not even read from disk (about 300 ms and 40 MB saved per process).
 */
type Sdk = { stop(): Promise<void> };

function start(): Sdk | undefined {
  const endpoint = process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  if (endpoint === undefined || endpoint === '') return undefined;
  const sdk: typeof import('./telemetry-sdk') = require('./telemetry-sdk');
  return sdk.startSdk({ endpoint, serviceName: process.env['SERVICE_NAME'] ?? 'unknown' });
}

const running = start();

/** Sends what is still held back, for at most 2 s: a dead collector must not hold up an exit. The last phase of a shutdown. */
export const stopTelemetry = async (): Promise<void> => {
  await running?.stop();
};
