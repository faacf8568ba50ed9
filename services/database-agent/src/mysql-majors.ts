import { DatabaseHostError } from '@drydock/agent/database/database-host-error';
import { flavourOf, type Major, programsOf } from '@drydock/contracts/databases/major';
import { findEngine, listEngines, type Engine as Programs } from '@drydock/mysql/engines/list-engines';

/** The majors whose programs were fetched or are installed. */
export const installedMysqlMajors = async (): Promise<Major[]> => (await listEngines()).map(({ version }) => version);

/** Throws `major_not_installed`. */
export async function findPrograms(major: Major): Promise<Programs> {
  const flavour = flavourOf(major);
  if (flavour === 'postgres') throw new Error(`${major} is no major of MySQL's`);
  try {
    return await findEngine(flavour, String(major));
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `the programs of ${programsOf(major)} are not installed here`, { cause: error });
  }
}
