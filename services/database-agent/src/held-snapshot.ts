/** A session that was opened before it is needed, so that taking its moment costs one round trip. */
export interface SnapshotSession {
  /** From now on it goes on looking at the moment of now. */
  take(): Promise<void>;
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

/** A transaction that goes on looking at one moment of a database, for whoever compares with it later. It does not outlive us. */
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
