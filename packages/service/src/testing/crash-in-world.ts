import type { CrashDefinition } from '@drydock/testing/crash-case';
import {
  type CrashFixture,
  type CrashOptions,
  type CrashReport,
  crashEveryStep,
} from '@drydock/testing/crash-every-step';
import type { ServiceWorld } from './service-world';

/** The parts of a crash test that the service's own test has to supply. */
export type WorldFixture<Run extends { workflowId: string }> = Omit<CrashFixture<Run>, 'leases' | 'spawnWorker'> &
  Partial<Pick<CrashFixture<Run>, 'spawnWorker'>>;

/** Runs {@link crashEveryStep} with the workers of a service's world. */
export const crashEveryStepInWorld = <Run extends { workflowId: string }>(
  world: ServiceWorld,
  definition: CrashDefinition,
  fixture: WorldFixture<Run>,
  scope: CrashOptions,
): Promise<CrashReport> =>
  crashEveryStep(definition, { leases: world.leases, spawnWorker: world.spawnWorker, ...fixture }, scope);

/** The definition of the workflow of this kind. Throws if there is none. */
export function definitionOf<Definition extends CrashDefinition>(
  definitions: readonly Definition[],
  kind: string,
): Definition {
  const definition = definitions.find((candidate) => candidate.kind === kind);
  if (definition === undefined) throw new Error(`there is no workflow ${kind}`);
  return definition;
}
