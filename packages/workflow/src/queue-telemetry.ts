import { BullMQOtel } from 'bullmq-otel';

/** BullMQ's spans. Metadata of a foreign job that is no JSON would leave that job active for ever; it is a job without a trace instead. */
export function queueTelemetry(tracerName: string): BullMQOtel {
  const telemetry = new BullMQOtel({ tracerName });
  const { contextManager } = telemetry;
  const read = contextManager.fromMetadata.bind(contextManager);
  contextManager.fromMetadata = (active, metadata) => {
    try {
      return read(active, metadata);
    } catch {
      return active;
    }
  };
  return telemetry;
}
