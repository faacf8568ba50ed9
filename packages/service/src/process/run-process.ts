import type { Log } from '../telemetry/log';
import { closeOnSignal, type Lifetime } from './shutdown';

/** A process that is put together and not yet started. */
export interface Process {
  log: Log;
  lifetime: Lifetime;
  /** Resolves with where it listens. */
  start(): Promise<{ url: string; port: number }>;
}

/**
 * Runs a process from its start to the signal that ends it; if it cannot start, it logs the reason and exits with 1.
 */
export function runProcess({ log, lifetime, start }: Process): void {
  closeOnSignal(lifetime, log);
  start().then(
    ({ url }) => log.info({ url }, 'listening'),
    (error: unknown) => {
      log.fatal({ err: error }, 'could not start');
      process.exit(1);
    },
  );
}
