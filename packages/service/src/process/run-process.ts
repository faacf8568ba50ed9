import type { Log } from '../telemetry/log';
import { closeOnSignal, type Lifetime } from './shutdown';

/**
 * Runs a command for a person. The exit code is what `main` resolves with. A failure is printed on stderr, and the exit
 * code is 1.
 */
export function runCommand(main: () => Promise<number>): void {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}

/** A process that is composed but not started yet. */
export interface Process {
  log: Log;
  lifetime: Lifetime;
  /** Resolves with the address at which the process listens. */
  start(): Promise<{ url: string; port: number }>;
}

/**
 * Runs a process from its start to the signal that ends it. If it cannot start, it logs the reason and exits with 1.
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
