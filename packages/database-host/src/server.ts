import { closeOnSignal } from '@drydock/service-kit/shutdown';
import { composeDatabaseHost } from './compose';
import { readDatabaseHostConfig } from './config';

async function main(): Promise<void> {
  const { lifetime, log } = await composeDatabaseHost(readDatabaseHostConfig());
  closeOnSignal(lifetime, log);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
  // A half-open host must not linger as if it were up.
  process.exit();
});
