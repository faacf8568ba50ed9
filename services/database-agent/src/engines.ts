import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import type { Engine } from './engine';
import { postgresEngine, requirePostgres } from './postgres-engine';

/** Postgres' majors come along as packages. */
const postgresMajors = [16, 17, 18];

/** Of every engine those whose programs are here. */
export async function installedMajors(): Promise<Major[]> {
  const isInstalled = (major: Major): Promise<boolean> =>
    postgresEngine.assertInstalled(major).then(
      () => true,
      () => false,
    );
  const found = await Promise.all(postgresMajors.map(isInstalled));
  return postgresMajors.filter((_major, at) => found[at]);
}

/** How the instances of a major are run. */
export function engineOf(major: Major): Engine {
  if (flavourOf(major) === 'postgres') return postgresEngine;
  requirePostgres(major);
  return postgresEngine;
}
