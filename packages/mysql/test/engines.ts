import { skipTests } from '@drydock/testing/skipped';
import { fetchableEngines } from '../src/engines/fetch-engine';
import { type Engine, listFetched } from '../src/engines/list-engines';

const fetched = listFetched();

/** Returns the fetched engine of this name, such as `mariadb@10.11`, or null. */
export const engineOf = (name: string): Engine | null =>
  fetched.find(({ flavour, version }) => `${flavour}@${version}` === name) ?? null;

/**
 * Runs the body with each of these engines. An engine that this machine does not have becomes a skipped test, which
 * says how to get it.
 */
export function describeEngines(names: readonly string[], body: (engine: Engine) => void): void {
  for (const name of names) {
    const engine = engineOf(name);
    if (engine === null) skipTests(name, `npm run engines -- ${name}`);
    else describe(name, () => body(engine));
  }
}

export const allEngines = fetchableEngines;
/** The engine that `npm test` uses. */
export const gateEngine = 'mariadb@10.11';

type Step = readonly [from: string, to: string];

/** The upgrade that `npm test` runs. */
export const gateUpgrade: Step = ['mariadb@10.5', gateEngine];
export const allUpgrades: readonly Step[] = [
  gateUpgrade,
  [gateEngine, 'mariadb@11.8'],
  ['mariadb@10.5', 'mariadb@11.8'],
];

/**
 * Runs the body with each of these steps. A step with a version that this machine does not have becomes a skipped test.
 */
export function describeUpgrades(steps: readonly Step[], body: (from: Engine, to: Engine) => void): void {
  for (const names of steps) {
    const [from, to] = names.map(engineOf);
    const title = names.join(' to ');
    if (from && to) describe(title, () => body(from, to));
    else skipTests(title, `npm run engines -- ${names.join(' ')}`);
  }
}
