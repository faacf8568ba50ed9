import type { DatabaseCatalogue, DatabaseEngine, DatabaseSize } from '@drydock/contracts/databases/databases';

type Version = DatabaseCatalogue['engines'][number]['versions'][number];

/** What the local host of databases runs: the majors whose binaries it brings along. Days of retirement: postgresql.org/support/versioning. */
export const catalogue: DatabaseCatalogue = {
  engines: [
    {
      engine: 'postgres',
      versions: [
        { version: '16', label: 'PostgreSQL 16', upgradable_to: ['17', '18'], end_of_life: '2028-11-09' },
        { version: '17', label: 'PostgreSQL 17', upgradable_to: ['18'], end_of_life: '2029-11-08' },
        { version: '18', label: 'PostgreSQL 18', upgradable_to: [], end_of_life: '2030-11-14' },
      ],
    },
  ],
  sizes: [
    { code: 'small', vcpu: 1, ram_gb: 2, storage_gb: 20 },
    { code: 'medium', vcpu: 2, ram_gb: 8, storage_gb: 100 },
    { code: 'large', vcpu: 8, ram_gb: 32, storage_gb: 500 },
  ],
};

/** null for an engine that is not offered. */
export const versionsOf = (engine: DatabaseEngine): readonly Version[] | null =>
  catalogue.engines.find((offered) => offered.engine === engine)?.versions ?? null;

export const findVersion = (engine: DatabaseEngine, version: string): Version | undefined =>
  versionsOf(engine)?.find((offered) => offered.version === version);

export const findSize = (code: string): DatabaseSize | undefined => catalogue.sizes.find((size) => size.code === code);
