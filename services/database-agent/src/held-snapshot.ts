import { type Move, Stage } from '@drydock/postgres/upgrade/session';
import type pg from 'pg';
import { z } from 'zod';

const idSchema = z.object({ id: z.string() });

/** A session that was opened before it is needed, so that taking the snapshot costs one round trip. */
export interface SnapshotSession {
  client: pg.Client;
  close(): Promise<void>;
}

/** A transaction that goes on looking at one moment of a database, for whoever compares with it later. It does not outlive us. */
export class HeldSnapshot {
  private session: SnapshotSession | null = null;
  private id: string | null = null;

  /** Null when there is none any more. */
  async read(): Promise<string | null> {
    if (this.session === null) return null;
    try {
      await this.session.client.query('select 1');
      return this.id;
    } catch {
      await this.drop();
      return null;
    }
  }

  /** By a reader of its own: a later stage ends the sessions of earlier ones, and not this one. */
  static async prepare(move: Move): Promise<SnapshotSession> {
    const stage = new Stage(move, { tag: `snapshot ${move.databaseName}`, applicationName: 'drydock snapshot' });
    try {
      const client = await stage.reader('target');
      return { client, close: () => stage.close() };
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  /** Takes the moment of now. */
  async take(session: SnapshotSession): Promise<void> {
    await this.drop();
    await session.client.query('begin isolation level repeatable read read only');
    this.id = idSchema.parse((await session.client.query('select pg_catalog.pg_export_snapshot() as id')).rows[0]).id;
    this.session = session;
  }

  isHolding(session: SnapshotSession): boolean {
    return this.session === session;
  }

  async drop(): Promise<void> {
    const { session } = this;
    this.session = null;
    this.id = null;
    await session?.close();
  }
}
