import type { NodeProgram } from '../node-member';
import type { PortBook } from '../ports';
import type { ServiceWithDatabase } from '../service-names';
import { agencyPrograms } from './agency';
import { computePrograms } from './compute';
import { databasesPrograms } from './databases';
import { gatewayPrograms } from './gateway';
import { hostingPrograms } from './hosting';
import { keysPrograms } from './keys';
import type { ProgramPlan, Surroundings, Tier } from './program';

/** Each service's processes: its own, its worker's, and the hosts and emulators that it works on. */
const programsOf: Readonly<Record<ServiceWithDatabase, readonly ProgramPlan[]>> = {
  keys: keysPrograms,
  hosting: hostingPrograms,
  compute: computePrograms,
  agency: agencyPrograms,
  databases: databasesPrograms,
};
const plans: readonly ProgramPlan[] = [...Object.values(programsOf).flat(), ...gatewayPrograms];

/** Every process of ours that is supervised. */
export const programNames: readonly string[] = plans.map(({ name }) => name);

const namesIn = (tier: Tier): string[] => plans.filter((plan) => plan.tier === tier).map(({ name }) => name);

/** In the order in which they are told to stop: who calls stops before who is called. */
export const stopOrder: readonly (readonly string[])[] = [
  namesIn('gateway'),
  namesIn('service'),
  namesIn('host'),
  ['redis', 'sites-postgres', 'postgres'],
];

/** Finds each process its port before the first of them runs. `given` are those that a user insists on. */
export async function settlePorts(book: PortBook, given: Readonly<Record<string, number>> = {}): Promise<Surroundings['portOf']> {
  const ports = new Map<string, number>();
  for (const { name } of plans) {
    const wanted = given[name] ?? 0;
    ports.set(name, wanted === 0 ? await book.settle(name) : await book.insist(name, wanted));
  }
  return (name) => {
    const port = ports.get(name);
    if (port === undefined) throw new Error(`No domain has a process called ${name}`);
    return port;
  };
}

const programOf = ({ name, entry, flags = [], environment }: ProgramPlan, around: Surroundings): NodeProgram => ({
  name,
  entry,
  flags,
  port: around.portOf(name),
  environment: environment(around),
});

/** Every process of ours, each with its own secrets and no one else's. */
export const listPrograms = (around: Surroundings): NodeProgram[] => plans.map((plan) => programOf(plan, around));

/** What a service that is developed alone works on: its hosts and emulators. */
export const listHosts = (service: ServiceWithDatabase, around: Surroundings): NodeProgram[] =>
  programsOf[service].filter(({ tier }) => tier === 'host').map((plan) => programOf(plan, around));
