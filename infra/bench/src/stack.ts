import { readFileSync } from 'node:fs';
import { type StackOptions, type StackProcesses, startStack, type TestStack } from '@drydock/testing/stack';

/**
 * Starts the whole of Drydock with the program of `npm start`. Unlike in tests, the databases write durably. The rate
 * limits are too high to be reached.
 */
export const startBenchStack = ({
  environment,
  ...place
}: Pick<StackOptions, 'dataDir' | 'environment'> = {}): Promise<TestStack> =>
  startStack({ ...place, environment: { DRYDOCK_EPHEMERAL: '', DRYDOCK_RATE_LIMIT_SCALE: '1000000', ...environment } });

/** Returns an environment variable of a running process, for example the URL of its database, which a peer uses too. */
export function environmentOf(processes: StackProcesses, name: string, variable: string): string {
  const environment = readFileSync(`/proc/${processes[name]?.pid}/environ`, 'utf8').split('\0');
  const found = environment.find((entry) => entry.startsWith(`${variable}=`));
  if (found === undefined) throw new Error(`${name} has no ${variable}`);
  return found.slice(variable.length + 1);
}
