import type {
  DatabaseCatalogue,
  DatabaseEngine,
  DatabaseSize,
  getDatabaseCatalogue as getDatabaseCatalogueEndpoint,
} from '@drydock/contracts/databases/databases';
import { flavourOf, type Major, majorOf } from '@drydock/contracts/databases/major';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';

type Version = DatabaseCatalogue['engines'][number]['versions'][number];

const postgres = (version: string, upgradableTo: string[], endOfLife: string): Version => ({
  version,
  flavour: null,
  label: `PostgreSQL ${version}`,
  upgradable_to: upgradableTo,
  end_of_life: endOfLife,
});

const mariadb = (version: string, upgradableTo: string[], endOfLife: string): Version => ({
  version,
  flavour: 'mariadb',
  label: `MariaDB ${version}`,
  upgradable_to: upgradableTo,
  end_of_life: endOfLife,
});

/** Drydock upgrades no version of MySQL, because replication between its versions is not tested yet. */
const mysql = (version: string, endOfLife: string): Version => ({
  ...mariadb(version, [], endOfLife),
  flavour: 'mysql',
  label: `MySQL ${version}`,
});

/**
 * Every version that Drydock can run. Postgres is always offered, because its programs are npm packages that every
 * database agent has. MySQL and MariaDB are offered in the versions whose programs the agent has. The end-of-life dates
 * are from postgresql.org/support/versioning, mariadb.org/about/#maintenance-policy and
 * oracle.com/support/lifetime-support.
 */
const known: DatabaseCatalogue['engines'] = [
  {
    engine: 'postgres',
    versions: [
      postgres('16', ['17', '18'], '2028-11-09'),
      postgres('17', ['18'], '2029-11-08'),
      postgres('18', [], '2030-11-14'),
    ],
  },
  {
    engine: 'mysql',
    versions: [
      mysql('8.0', '2026-04-30'),
      mysql('8.4', '2032-04-30'),
      mysql('9.7', '2034-04-30'),
      mariadb('10.5', ['10.11', '11.8'], '2025-06-24'),
      mariadb('10.11', ['11.8'], '2028-02-16'),
      mariadb('11.8', [], '2028-06-04'),
    ],
  },
];

const sizes: DatabaseSize[] = [
  { code: 'small', vcpu: 1, ram_gb: 2, storage_gb: 20 },
  { code: 'medium', vcpu: 2, ram_gb: 8, storage_gb: 100 },
  { code: 'large', vcpu: 8, ram_gb: 32, storage_gb: 500 },
];

const isThere = (version: string, majors: readonly Major[]): boolean =>
  flavourOf(majorOf(version)) === 'postgres' || majors.includes(majorOf(version));

/**
 * Lists every version of an engine that Drydock can run. `majors` are the majors whose programs the agent has. A
 * version whose programs the agent lacks is listed too, but it is in no version's `upgradable_to`.
 */
export const versionsOf = (engine: DatabaseEngine, majors: readonly Major[]): Version[] =>
  allVersions(engine).map((version) => ({
    ...version,
    upgradable_to: version.upgradable_to.filter((newer) => isThere(newer, majors)),
  }));

const allVersions = (engine: DatabaseEngine): readonly Version[] =>
  known.find((one) => one.engine === engine)?.versions ?? [];

/** The catalogue of an agent that has the programs of `majors`. */
export function catalogueOf(majors: readonly Major[]): DatabaseCatalogue {
  const engines = known.map(({ engine }) => ({
    engine,
    versions: versionsOf(engine, majors).filter(({ version }) => isThere(version, majors)),
  }));
  return { engines: engines.filter(({ versions }) => versions.length > 0), sizes };
}

export const findVersion = (engine: DatabaseEngine, version: string): Version | undefined =>
  allVersions(engine).find((one) => one.version === version);

export const sizeCodes: readonly string[] = sizes.map(({ code }) => code);

export const findSize = (code: string): DatabaseSize | undefined => sizes.find((size) => size.code === code);

/** Shows the catalogue. If the agent does not answer, the catalogue has only the versions of Postgres. */
export const getCatalogue = ({ provider }: HandlerContext) =>
  ({
    read: async () => ({ status: 200, body: catalogueOf(await provider.listMajors().catch(() => [])) }),
  }) satisfies ReadHandlers<typeof getDatabaseCatalogueEndpoint>;

/**
 * Asks the agent for the majors whose programs it has. Throws `dependency_unavailable` if the agent does not answer.
 * The agent is not asked, and the list is empty, for Postgres, whose programs every agent has, and for a version that
 * is not in the catalogue.
 */
export async function majorsFor(
  { provider }: HandlerContext,
  { engine, engine_version: version }: { engine: DatabaseEngine; engine_version: string },
): Promise<readonly Major[]> {
  if (engine === 'postgres' || findVersion(engine, version) === undefined) return [];
  try {
    return await provider.listMajors();
  } catch (error) {
    throw problem('dependency_unavailable', {
      extra: { dependency: 'database-host' },
      retryAfterSeconds: 30,
      cause: error,
    });
  }
}
