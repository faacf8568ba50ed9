import { type ConfigOf, processFields, readConfig, secretsField } from '@drydock/service/process';
import { z } from 'zod';

export const databaseHostConfigShape = {
  ...processFields('database-host'),
  DATABASE_HOST_SECRET: secretsField('Verifies the control calls of databases; shared with it alone'),
  DATABASE_HOST_READER_SECRET: secretsField(
    "Verifies the questions of databases' API, which can change nothing; unset, there are none",
  ).optional(),
  DATABASES_DIR: z
    .string()
    .min(1)
    .meta({ description: 'Folder of all instances: data, records, ledger, certificates' }),
  DATABASES_PUBLIC_HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:-]{1,253}$/)
    .default('127.0.0.1')
    .meta({
      description: "Name or address by which customers reach this machine; it is in their database's certificate",
    }),
};

export type DatabaseHostConfig = ConfigOf<typeof databaseHostConfigShape>;

export const readDatabaseHostConfig = (): DatabaseHostConfig => readConfig(databaseHostConfigShape, process.env);
