import { randomBytes } from 'node:crypto';
import { comparisonSchema, DatabaseHostError } from '@drydock/agent/database';
import { type Major, programsOf } from '@drydock/contracts/databases/major';
import {
  abandonMove,
  bringLevel,
  customerSessionBytes,
  listExtensions,
  lockOut,
  type Move,
  openDatabase,
  ownObjects,
  prepareLevel,
  readOpening,
  Stage,
  startPostgres,
  UpgradeError,
} from '@drydock/postgres';
import { settleHome } from '@drydock/process';
import type pg from 'pg';
import { z } from 'zod';
import { postgresWire } from '../../endpoint/wire';
import { runJob } from '../../jobs/job-child';
import type { Cutover, Engine, EngineJobs, Moving, Purpose, SnapshotSession, Start } from '../engine';
import { customerRules, instanceSettings, scratchRules, tuningOf, writeServerFiles } from '../instance-settings';
import type { Setup } from './job.program';
import {
  applyAccess,
  endBackend,
  isReadOnly,
  keepReadOnly,
  makeOwnDatabase,
  readKnownPorts,
  readLimit,
  readSize,
  restoreLimit,
} from './own-database';

/** The major of Postgres. Throws `major_not_installed` for a major of another engine. */
export function requirePostgres(major: Major): number {
  if (typeof major === 'number') return major;
  throw new DatabaseHostError('major_not_installed', `${programsOf(major)} is no Postgres`);
}

/** The extensions that a major has on this machine. Throws `major_not_installed`. */
function extensionsOf(major: Major): string[] {
  const postgres = requirePostgres(major);
  try {
    return listExtensions(postgres);
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `Postgres ${major} is not installed here`, { cause: error });
  }
}

/** The installed majors of Postgres, whose programs are npm packages. */
export const installedPostgresMajors = (): Major[] =>
  [16, 17, 18].filter((major) => {
    try {
      return extensionsOf(major).length > 0;
    } catch {
      return false;
    }
  });

/**
 * The facts about an upgrade or a restore that its stages in Postgres need. They contain the superuser's URLs and a
 * secret, so they never leave the machine.
 */
export const postgresMove = ({ oldUrl, targetUrl, databaseName, upgrade, fence }: Moving): Move => ({
  oldUrl,
  targetUrl,
  databaseName,
  path: upgrade.path,
  secret: upgrade.secret,
  fence,
});

const idSchema = z.object({ id: z.string() });

/** A snapshot that other sessions can use by its id. */
class PostgresSnapshot implements SnapshotSession {
  id: string | null = null;
  private readonly client: pg.Client;
  private readonly stage: Stage;

  private constructor(client: pg.Client, stage: Stage) {
    this.client = client;
    this.stage = stage;
  }

  /**
   * Opens the session of the snapshot. Its stage has a tag and an application name of its own. Under the usual names,
   * the next stage would remove its role and end its session as leftovers.
   */
  static async prepare(move: Move): Promise<PostgresSnapshot> {
    const stage = new Stage(move, { tag: `snapshot ${move.databaseName}`, applicationName: 'drydock snapshot' });
    try {
      return new PostgresSnapshot(await stage.reader('target'), stage);
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  async take(): Promise<void> {
    await this.client.query('begin isolation level repeatable read read only');
    this.id = idSchema.parse((await this.client.query('select pg_catalog.pg_export_snapshot() as id')).rows[0]).id;
  }

  isAlive(): Promise<boolean> {
    return this.client.query('select 1').then(
      () => true,
      () => false,
    );
  }

  close(): Promise<void> {
    return this.stage.close();
  }
}

/** Opens the cutover. Everything slow is done here, before `seal` locks customers out. */
async function openCutover(moving: Moving): Promise<Cutover> {
  const { databaseName, upgrade } = moving;
  const move = postgresMove(moving);
  const stage = new Stage(move);
  let snapshot: SnapshotSession | null = null;
  try {
    const prepared = await prepareLevel(stage).catch(refuse);
    // The target of a restore is not compared, because its content is meant to differ from the replaced database.
    if (upgrade.path !== 'restore') snapshot = await PostgresSnapshot.prepare(move);
    else await restoreLimit(move.targetUrl, databaseName, upgrade.connection_limit);
    const [oldServer, targetServer] = [await stage.server('old'), await stage.server('target')];
    const kept = await stage.rolesOf('old');
    return {
      readOpening: () => readOpening(oldServer, databaseName, upgrade.connection_limit),
      seal: () => lockOut(oldServer, databaseName, kept).catch(refuse),
      bringLevel: (lap) => bringLevel(stage, prepared, lap).catch(refuse),
      snapshot,
      open: (opening) => openDatabase(targetServer, [...opening]).catch(refuse),
      close: () => stage.close(),
    };
  } catch (error) {
    await snapshot?.close();
    await stage.close();
    throw error;
  }
}

function refuse(error: unknown): never {
  if (error instanceof UpgradeError)
    throw new DatabaseHostError('not_caught_up', `${error.code}: ${error.message}`, { cause: error });
  throw error;
}

const trialNames = { database: 'restored', role: 'restorer' } as const;

/** Makes the compiler check that the object is a setup of Postgres' job program. */
const told = (setup: Setup): { setup: Setup } => ({ setup });

const compareSetup = (moving: Moving, snapshotId: string | null): Setup => ({
  kind: 'stage',
  stage: 'compare',
  move: postgresMove(moving),
  snapshot_id: snapshotId,
});

const postgresJobs: EngineJobs = {
  program: 'engines/postgres/job.program.js',
  dump: async ({ databaseId, databaseName, adminUrl, major, expectedBytes, grants }, archive) =>
    told({
      kind: 'dump',
      database_id: databaseId,
      database: { url: adminUrl, databaseName },
      major: requirePostgres(major),
      expected_bytes: expectedBytes,
      grants,
      archive,
    }),
  load: async (moving, archive) => told({ kind: 'load_dump', move: postgresMove(moving), archive }),
  loadOnTrial: async (kind, { databaseId, scratch: { adminUrl, port, caCertificate } }, archive) => {
    // An ordinary role owns the empty database. It fills the database without TLS and may also log in with TLS.
    const { database: databaseName, role: username } = trialNames;
    const password = randomBytes(24).toString('base64url');
    await makeOwnDatabase(adminUrl, { databaseName, username, password, mayMakeRoles: false });
    const url = `postgresql://${username}:${password}@127.0.0.1:${port}/${databaseName}`;
    return told({
      kind,
      database_id: databaseId,
      scratch: { url, admin_url: adminUrl, ca_certificate: caCertificate },
      archive,
    });
  },
  precheck: async ({ databaseName, adminUrl: url, toMajor, trialUrl, freeBytes }) => {
    const secret = randomBytes(32).toString('hex');
    const move = { oldUrl: url, databaseName, path: 'logical' as const, secret, fence: '0' };
    return told({
      kind: 'precheck',
      database: { url, databaseName },
      to_major: requirePostgres(toMajor),
      extensions_of_target: extensionsOf(toMajor),
      free_bytes: freeBytes,
      trial: trialUrl === null ? null : { ...move, targetUrl: trialUrl },
    });
  },
  stage: async (moving, stage) => told({ kind: 'stage', stage, move: postgresMove(moving), snapshot_id: null }),
};

export const postgresEngine: Engine = {
  wire: postgresWire,
  jobs: postgresJobs,
  assertInstalled: async (major) => void extensionsOf(major),
  start: async ({ purpose, tls, ...start }: Start) => {
    const major = requirePostgres(start.major);
    const tuning = tuningOf(purpose.size, rulesOf(purpose), purpose.isFrozen);
    const files = writeServerFiles(settleHome(start.folder).home, start.account, {
      hba_file: ['pg_hba.conf', tuning.accessRules],
      ssl_cert_file: ['server.crt', tls.certificate],
      ssl_key_file: ['server.key', tls.key],
    });
    const server = await startPostgres({
      ...start,
      major,
      sessionBytes: customerSessionBytes,
      settings: instanceSettings(tuning),
      files,
    });
    return { ...server, diskFolder: server.dataDir };
  },
  makeOwnDatabase: (adminUrl, { size: _size, ...wanted }) =>
    makeOwnDatabase(adminUrl, { ...wanted, mayMakeRoles: true }),
  readSize,
  logFiles: 'pg_wal',
  // Postgres removes its log itself at each checkpoint.
  trimLog: async () => undefined,
  isReadOnly,
  keepReadOnly: async (adminUrl, _owner, isOn) => {
    await keepReadOnly(adminUrl, isOn);
    return true;
  },
  readKnownPorts,
  endBackend,
  applyAccess: (adminUrl, { databaseName, isOpen, upgrade }) => {
    const { publisher, replicator } = ownObjects(upgrade?.secret ?? '');
    const kept = upgrade === null ? [] : [publisher.role, replicator.role];
    return applyAccess(adminUrl, databaseName, { isOpen, opening: upgrade?.opening ?? [], kept });
  },
  readLimit,
  openCutover,
  compare: (moving, snapshot, running) => {
    const setup = compareSetup(moving, snapshot instanceof PostgresSnapshot ? snapshot.id : null);
    return runJob(postgresJobs.program, { setup }, { channel: null, ...running, result: comparisonSchema });
  },
  takeBack: async ({ oldUrl, databaseName, upgrade, fence }: Omit<Moving, 'targetUrl' | 'fromMajor'>) => {
    const { secret, path, opening, connection_limit: connectionLimit } = upgrade;
    await abandonMove({ oldUrl, targetUrl: '', databaseName, path, secret, fence });
    // The old instance is opened while the record still has the statements for that, so that the opening can be
    // repeated after a crash.
    await applyAccess(oldUrl, databaseName, { isOpen: true, opening, kept: [] });
    await restoreLimit(oldUrl, databaseName, connectionLimit);
  },
};

const rulesOf = ({ databaseName }: Purpose): string =>
  databaseName === null ? scratchRules : customerRules(databaseName);
