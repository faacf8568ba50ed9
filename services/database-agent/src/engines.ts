import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import type { Engine } from './engine';
import { mysqlEngine } from './mysql-engine';
import { installedMysqlMajors } from './mysql-majors';
import { postgresEngine } from './postgres-engine';
import { installedPostgresMajors } from './postgres-majors';

/** Of every engine those whose programs are here. */
export const installedMajors = async (): Promise<Major[]> => [...installedPostgresMajors(), ...(await installedMysqlMajors())];

/** How the instances of a major are run. */
export const engineOf = (major: Major): Engine => (flavourOf(major) === 'postgres' ? postgresEngine : mysqlEngine);
