import { type ConfigOf, processFields, readConfig, secretsField } from '@drydock/service/process';
import { z } from 'zod';

export const siteHostConfigShape = {
  ...processFields('site-host'),
  SITE_HOST_SECRET: secretsField('Verifies the control calls of hosting; shared with it alone'),
  SITE_HOST_READER_SECRET: secretsField(
    "Verifies the questions of hosting's API, which can change nothing; unset, there are none",
  ).optional(),
  SITES_DIR: z.string().min(1).meta({ description: 'Folder of all sites: files, records, ledger' }),
  SITES_DATABASE_URL: z
    .url('must be a URL')
    .optional()
    .meta({
      description:
        "Superuser of a Postgres for sites' databases, for this process only, with two passwords (current,another) " +
        'while they are rotated; unset, each organisation has a server of its own here',
      secret: true,
    }),
  SITES_DATABASE_SOCKET: z
    .string()
    .min(1)
    .optional()
    .meta({
      description:
        "Folder of that server's Unix socket, by which everything goes to it; " +
        'unset, it goes by its port, which every site reaches',
    }),
  SITES_DATABASE_FOR: z
    .enum(['all_sites', 'older_releases'])
    .default('all_sites')
    .meta({
      description:
        'What that server is for: all sites, or the releases that are in it already, ' +
        'while new ones go to the servers of the organisations',
    }),
  SITE_DISK_GB: z.coerce.number().positive().default(20).meta({
    description:
      'What the live files of a site may take on disk, and its live database as much again, in GB of 10^9 bytes',
  }),
  SITES_OUTGOING_ALLOW: z
    .string()
    .regex(/^[0-9a-fA-F.:]+\/\d{1,3}(?:,[0-9a-fA-F.:]+\/\d{1,3})*$/, 'must be address/bits,address/bits')
    .optional()
    .meta({
      description:
        'Ranges that applications may connect to beside the public internet, 10.1.0.0/16,fd12::/48; ' +
        'unset, no private address',
    }),
  DRYDOCK_RUN_APPS_WITHOUT_ISOLATION: z
    .literal('sites-may-take-over-this-machine')
    .optional()
    .meta({ description: 'Runs applications although nothing keeps them apart here; for your own code only' }),
};

export type SiteHostConfig = ConfigOf<typeof siteHostConfigShape>;

export const readSiteHostConfig = (): SiteHostConfig => readConfig(siteHostConfigShape, process.env);
