import { flavourOf, type Major } from '@drydock/contracts/databases/major';
import type { Engine } from './engine';
import { installedMysqlMajors, mysqlEngine } from './mysql-engine';
import { installedPostgresMajors, postgresEngine } from './postgres-engine';

/** Of every engine those whose programs are here. */
export const installedMajors = async (): Promise<Major[]> => [...installedPostgresMajors(), ...(await installedMysqlMajors())];

/** How the instances of a major are run. */
export const engineOf = (major: Major): Engine => (flavourOf(major) === 'postgres' ? postgresEngine : mysqlEngine);
