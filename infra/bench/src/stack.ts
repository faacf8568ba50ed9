import { readFileSync } from 'node:fs';
import { type StackOptions, type StackProcesses, startStack, type TestStack } from '@drydock/testing/stack';

/**
 * The whole of Drydock, started by the program of `npm start`, on durable databases and with quotas that do not limit
 * anything.
 */
export const startBenchStack = ({
  environment,
  ...place
}: Pick<StackOptions, 'dataDir' | 'environment'> = {}): Promise<TestStack> =>
  startStack({ ...place, environment: { DRYDOCK_EPHEMERAL: '', DRYDOCK_RATE_LIMIT_SCALE: '1000000', ...environment } });

/** A variable of a running process. The peers of a benchmark use the same database. */
export function environmentOf(processes: StackProcesses, name: string, variable: string): string {
  const environment = readFileSync(`/proc/${processes[name]?.pid}/environ`, 'utf8').split('\0');
  const found = environment.find((entry) => entry.startsWith(`${variable}=`));
  if (found === undefined) throw new Error(`${name} has no ${variable}`);
  return found.slice(variable.length + 1);
}
