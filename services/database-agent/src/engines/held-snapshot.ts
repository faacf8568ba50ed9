/** A session that is opened in advance, so that taking the snapshot costs one round trip. */
export interface SnapshotSession {
  /** Fixes the snapshot at this moment. */
  take(): Promise<void>;
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

/** A transaction that keeps a snapshot of a database for a later comparison. It ends with this process. */
export class HeldSnapshot {
  private session: SnapshotSession | null = null;

  /** Null when there is none any more. */
  async read(): Promise<SnapshotSession | null> {
    if (this.session === null) return null;
    if (!(await this.session.isAlive())) await this.drop();
    return this.session;
  }

  async take(session: SnapshotSession): Promise<void> {
    await this.drop();
    await session.take();
    this.session = session;
  }

  isHolding(session: SnapshotSession): boolean {
    return this.session === session;
  }

  async drop(): Promise<void> {
    const { session } = this;
    this.session = null;
    await session?.close();
  }
}
