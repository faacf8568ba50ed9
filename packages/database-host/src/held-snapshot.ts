import { openSession, type Session } from '@drydock/pg-transfer/session';
import { z } from 'zod';

/** The longest that a comparison may take; a transaction that stays open keeps the server from tidying up. */
const limit = '2h';
const idSchema = z.object({ id: z.string() });

/** A transaction that goes on looking at one moment of a database, for whoever compares with it later. It does not outlive us. */
export class HeldSnapshot {
  private session: Session | null = null;
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

  /** A session that was opened before, so that taking the snapshot costs one round trip. */
  static async prepare(url: string): Promise<Session> {
    const session = await openSession(url);
    await session.client.query(`set idle_in_transaction_session_timeout = '${limit}'`);
    return session;
  }

  /** Takes the moment of now. */
  async take(session: Session): Promise<void> {
    await this.drop();
    await session.client.query('begin isolation level repeatable read read only');
    this.id = idSchema.parse((await session.client.query('select pg_catalog.pg_export_snapshot() as id')).rows[0]).id;
    this.session = session;
  }

  isHolding(session: Session): boolean {
    return this.session === session;
  }

  async drop(): Promise<void> {
    const { session } = this;
    this.session = null;
    this.id = null;
    await session?.close();
  }
}
