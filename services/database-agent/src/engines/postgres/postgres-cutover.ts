import { DatabaseHostError } from '@drydock/agent/database';
import {
  bringLevel,
  lockOut,
  type Move,
  openDatabase,
  openingStatements,
  prepareLevel,
  Stage,
  UpgradeError,
} from '@drydock/postgres';
import type pg from 'pg';
import { z } from 'zod';
import type { Cutover, Moving, SnapshotSession } from '../engine';
import { restoreLimit } from './own-database';

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
export class PostgresSnapshot implements SnapshotSession {
  id: string | null = null;
  private readonly client: pg.Client;
  private readonly stage: Stage;

  private constructor(client: pg.Client, stage: Stage) {
    this.client = client;
    this.stage = stage;
  }

  /**
   * Opens the session of the snapshot. Its stage has an application name of its own, because each stage ends the
   * sessions that earlier stages left under the same name.
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

/** Opens the cutover. Everything slow is done here, before any customer has to wait. */
export async function openPostgresCutover(moving: Moving): Promise<Cutover> {
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
      readOpening: () => openingStatements(oldServer, databaseName, upgrade.connection_limit),
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
