import { closeOnSignal, createLifetime, shutdownLimitMs } from '@drydock/service/process';
import { beginTraces, createLog } from '@drydock/service/telemetry';
import { composeGateway } from './compose';
import { readGatewayConfig } from './config';

async function main(): Promise<void> {
  const traces = beginTraces();
  const config = readGatewayConfig();
  const log = createLog({ service: config.serviceName, level: config.logLevel });
  const lifetime = createLifetime(log, shutdownLimitMs + config.drainMs);
  const gateway = composeGateway({ config, log, ...(traces === undefined ? {} : { traces }) });
  lifetime.onClose('gateway', () => gateway.close(), config.drainMs + 21_000);
  closeOnSignal(lifetime, log);
  log.info(await gateway.listen(config.port, config.host), 'listening');
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
