import { closeOnSignal, type Lifetime } from '@drydock/service/process/shutdown';
import type { Log } from '@drydock/service/telemetry/log';
import { traceForWork } from '@drydock/service/telemetry/spans';

/** The life of a host's process, closed in order by a signal. One that cannot be opened says why and ends with 1. */
export async function runHost(open: () => Promise<{ lifetime: Lifetime; log: Log }>): Promise<void> {
  traceForWork();
  try {
    const { lifetime, log } = await open();
    closeOnSignal(lifetime, log);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    // A half-open host must not linger as if it were up.
    process.exit(1);
  }
}
