import { DatabaseHostError } from '@drydock/agent/database/database-host-error';
import { type Major, programsOf } from '@drydock/contracts/databases/major';
import { listExtensions } from '@drydock/postgres/server/native-postgres';

/** The major, if it is one of Postgres'. Throws `major_not_installed`. */
export function requirePostgres(major: Major): number {
  if (typeof major === 'number') return major;
  throw new DatabaseHostError('major_not_installed', `${programsOf(major)} is no Postgres`);
}

/** Throws `major_not_installed`. */
export function extensionsOf(major: Major): string[] {
  const postgres = requirePostgres(major);
  try {
    return listExtensions(postgres);
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `Postgres ${major} is not installed here`, { cause: error });
  }
}

/** They come along as packages. */
export const installedPostgresMajors = (): Major[] =>
  [16, 17, 18].filter((major) => {
    try {
      return extensionsOf(major).length > 0;
    } catch {
      return false;
    }
  });
