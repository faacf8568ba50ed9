import type pg from 'pg';
import { openSnapshotSession, type Session } from './session';

const readersMax = 2;

/** Up to two connections that look at one exported snapshot, so that two tables can be read at the same time. */
export class SnapshotReaders {
  private readonly url: string;
  private readonly snapshotId: string;
  private readonly signal: AbortSignal | undefined;
  private readonly idle: Session[] = [];
  private readonly all = new Set<Session>();
  private readonly waiting: (() => void)[] = [];
  private inUse = 0;

  constructor(url: string, snapshotId: string, signal: AbortSignal | undefined) {
    this.url = url;
    this.snapshotId = snapshotId;
    this.signal = signal;
  }

  /** Streams what `run` reads. The connection is taken at the first byte and given back at the end; one left in the middle is closed. */
  async *read(run: (client: pg.Client) => AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    while (this.inUse >= readersMax) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.inUse++;
    let session: Session | undefined;
    let isWhole = false;
    try {
      session = this.idle.pop() ?? (await this.open());
      yield* run(session.client);
      isWhole = true;
    } finally {
      if (session) await this.giveBack(session, isWhole);
      this.inUse--;
      this.waiting.shift()?.();
    }
  }

  private async open(): Promise<Session> {
    const session = await openSnapshotSession(this.url, this.snapshotId, this.signal);
    this.all.add(session);
    return session;
  }

  private async giveBack(session: Session, isWhole: boolean): Promise<void> {
    if (isWhole) {
      this.idle.push(session);
      return;
    }
    this.all.delete(session);
    await session.close();
  }

  async close(): Promise<void> {
    await Promise.all([...this.all].map((session) => session.close()));
  }
}
