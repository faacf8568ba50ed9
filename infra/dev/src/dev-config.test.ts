import { readDevConfig } from './dev-config';

test('OpenTelemetry’s own variables reach every process, but for those of which each has its own', () => {
  const given = {
    OTEL_EXPORTER_OTLP_HEADERS: 'a=b',
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
    OTEL_RESOURCE_ATTRIBUTES: 'a=b',
  };
  const own = { OTEL_SERVICE_NAME: 'mine', OTEL_EXPORTER_PROMETHEUS_PORT: '9500' };
  const { commonEnvironment } = readDevConfig({ ...given, ...own, SOMETHING_ELSE: 'x' });
  expect(commonEnvironment).toMatchObject(given);
  for (const name of [...Object.keys(own), 'SOMETHING_ELSE']) expect(commonEnvironment).not.toHaveProperty(name);
});
