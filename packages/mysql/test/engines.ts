import { skipTests } from '@drydock/testing/skipped';
import { fetchableEngines } from '../src/engines/fetch-engine';
import { type Engine, listFetched } from '../src/engines/list-engines';

const fetched = listFetched();

/** What is there of what can be fetched, by name: `mariadb@10.11`. */
export const engineOf = (name: string): Engine | null => fetched.find(({ flavour, version }) => `${flavour}@${version}` === name) ?? null;

/** Runs the body with each of these engines. One that is not there is a skipped test, which says how to get it. */
export function describeEngines(names: readonly string[], body: (engine: Engine) => void): void {
  for (const name of names) {
    const engine = engineOf(name);
    if (engine === null) skipTests(name, `npm run engines -- ${name}`);
    else describe(name, () => body(engine));
  }
}

export const allEngines = fetchableEngines;
/** The one that the gate has. */
export const gateEngine = 'mariadb@10.11';

/** The steps of a live upgrade, each between two versions. */
const allUpgrades = [
  ['mariadb@10.5', 'mariadb@10.11'],
  ['mariadb@10.11', 'mariadb@11.8'],
  ['mariadb@10.5', 'mariadb@11.8'],
] as const;

/** Runs the body with each pair of versions; a pair of which one is not there is a skipped test. */
export function describeUpgrades(body: (from: Engine, to: Engine) => void): void {
  for (const names of allUpgrades) {
    const [from, to] = names.map(engineOf);
    const title = names.join(' to ');
    if (from && to) describe(title, () => body(from, to));
    else skipTests(title, `npm run engines -- ${names.join(' ')}`);
  }
}
