import { comparisonSchema } from '@drydock/agent/database/protocol';
import { customerSessionBytes } from '@drydock/postgres/server/kept-postgres';
import { startPostgres } from '@drydock/postgres/server/postgres';
import { ownObjects } from '@drydock/postgres/upgrade/copy/own-objects';
import { abandonMove } from '@drydock/postgres/upgrade/finish';
import { settleHome } from '@drydock/process/server-folder';
import { postgresWire } from '../../endpoint/wire';
import { runJob } from '../../jobs/job-child';
import type { Engine, Moving, Purpose, Start } from '../engine';
import { customerRules, instanceSettings, scratchRules, tuningOf } from '../instance-settings';
import { writeServerFiles } from '../server-files';
import {
  endBackend,
  makeOwnDatabase,
  readKnownPorts,
  readLimit,
  readSize,
  restoreLimit,
  settleAccess,
} from './own-database';
import { openPostgresCutover, PostgresSnapshot } from './postgres-cutover';
import { compareSetup, postgresJobs } from './postgres-jobs';
import { extensionsOf, requirePostgres } from './postgres-majors';

export const postgresEngine: Engine = {
  wire: postgresWire,
  jobs: postgresJobs,
  assertInstalled: async (major) => void extensionsOf(major),
  start: ({ purpose, tls, ...start }: Start) => {
    const major = requirePostgres(start.major);
    const tuning = tuningOf(purpose.size, rulesOf(purpose), purpose.isFrozen);
    const files = writeServerFiles(settleHome(start.folder).home, start.account, {
      hba_file: ['pg_hba.conf', tuning.accessRules],
      ssl_cert_file: ['server.crt', tls.certificate],
      ssl_key_file: ['server.key', tls.key],
    });
    return startPostgres({
      ...start,
      major,
      sessionBytes: customerSessionBytes,
      settings: instanceSettings(tuning),
      files,
    });
  },
  makeOwnDatabase: (adminUrl, { size: _size, ...wanted }) =>
    makeOwnDatabase(adminUrl, { ...wanted, mayMakeRoles: true }),
  readSize,
  readKnownPorts,
  endBackend,
  settleAccess: (adminUrl, { databaseName, isOpen, upgrade }) => {
    const { publisher, replicator } = ownObjects(upgrade?.secret ?? '');
    const kept = upgrade === null ? [] : [publisher.role, replicator.role];
    return settleAccess(adminUrl, databaseName, { isOpen, opening: upgrade?.opening ?? [], kept });
  },
  readLimit,
  openCutover: openPostgresCutover,
  compare: (moving, snapshot, running) => {
    const setup = compareSetup(moving, snapshot instanceof PostgresSnapshot ? snapshot.id : null);
    return runJob(postgresJobs.program, { setup }, { channel: null, ...running, result: comparisonSchema });
  },
  takeBack: async ({ oldUrl, databaseName, upgrade, fence }: Omit<Moving, 'targetUrl' | 'fromMajor'>) => {
    const { secret, path, opening, connection_limit: connectionLimit } = upgrade;
    await abandonMove({ oldUrl, targetUrl: '', databaseName, path, secret, fence });
    // This is done while the record still holds the statements: after a crash from here on, the old instance is opened
    // from the record.
    await settleAccess(oldUrl, databaseName, { isOpen: true, opening, kept: [] });
    await restoreLimit(oldUrl, databaseName, connectionLimit);
  },
};

const rulesOf = ({ databaseName }: Purpose): string =>
  databaseName === null ? scratchRules : customerRules(databaseName);
