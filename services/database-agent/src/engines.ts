import { DatabaseHostError } from '@drydock/agent/database/database-host-error';
import { type Major, programsOf } from '@drydock/contracts/databases/major';
import { listExtensions } from '@drydock/postgres/server/native-postgres';

/** Postgres' majors come along as packages. */
const postgresMajors = [16, 17, 18];

/** Of every engine those whose programs are here. */
export const installedMajors = (): Major[] => postgresMajors.filter((major) => isInstalled(major));

function isInstalled(major: number): boolean {
  try {
    return listExtensions(major).length > 0;
  } catch {
    return false;
  }
}

/** The major, where it is one of Postgres'. Throws `major_not_installed`. */
export function requirePostgres(major: Major): number {
  if (typeof major === 'number') return major;
  throw new DatabaseHostError('major_not_installed', `the programs of ${programsOf(major)} are not installed here`);
}
