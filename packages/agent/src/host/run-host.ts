import { closeOnSignal, type Lifetime } from '@drydock/service/process';
import { type Log, traceForWork } from '@drydock/service/telemetry';

/**
 * Runs an agent's process until SIGTERM or SIGINT, and then closes the agent in order. If the agent cannot be opened,
 * the process prints the reason and exits with 1.
 */
export async function runHost(open: () => Promise<{ lifetime: Lifetime; log: Log }>): Promise<void> {
  traceForWork();
  try {
    const { lifetime, log } = await open();
    closeOnSignal(lifetime, log);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    // The process exits, because an agent that has started only in part would look as if it worked.
    process.exit(1);
  }
}
