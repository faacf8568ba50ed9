import type { Server } from 'node:http';
import { closeServer, listen } from '@drydock/service/http';
import { closeOnSignal, createLifetime } from '@drydock/service/process';
import { createLog } from '@drydock/service/telemetry';

interface ProcessConfig {
  SERVICE_NAME: string;
  HOST: string;
  PORT: number;
  LOG_LEVEL: string;
}

/** Runs an emulator as a process until it gets a signal. */
export function runEmulator<Config extends ProcessConfig>(
  readConfig: () => Config,
  create: (config: Config) => Server,
): void {
  start(readConfig, create).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
    // A failed start ends the process, because an emulator that is only partly started would seem to work.
    process.exit();
  });
}

async function start<Config extends ProcessConfig>(
  readConfig: () => Config,
  create: (config: Config) => Server,
): Promise<void> {
  const config = readConfig();
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const server = create(config);
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('server', () => closeServer(server));
  log.info({ url }, 'emulator is up');
  closeOnSignal(lifetime, log);
}
