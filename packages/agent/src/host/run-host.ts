import { closeOnSignal, type Lifetime } from '@drydock/service/process';
import { type Log, traceForWork } from '@drydock/service/telemetry';

/**
 * Runs a host's process until a signal, and then closes it in order. If the host cannot be opened, it logs the reason
 * and exits with 1.
 */
export async function runHost(open: () => Promise<{ lifetime: Lifetime; log: Log }>): Promise<void> {
  traceForWork();
  try {
    const { lifetime, log } = await open();
    closeOnSignal(lifetime, log);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    // The process ends, because a host that has started in part would look as if it worked.
    process.exit(1);
  }
}
