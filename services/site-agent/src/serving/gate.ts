import type { Socket } from 'node:net';
import { SerialQueue } from '@drydock/agent/host';
import type { SiteFolder } from '../on-disk/site-folder';

const heldMax = 2_000;
/** The longest wait at the gate. Most switches take less time, and most clients would wait longer. */
const heldMsMax = 20_000;

export class GateError extends Error {
  override readonly name = 'GateError';
}

/** Keeps a freeze on disk. If the site agent dies during a freeze, the site must not be open at the next start. */
type FreezeStore = Pick<SiteFolder, 'readFreeze' | 'writeFreeze' | 'removeFreeze'>;

/**
 * Lets everybody pass while it is open. While it is frozen, requests and database sessions wait until it thaws. A wait
 * of 20 s ends with an error.
 */
export class Gate {
  private readonly store: FreezeStore;
  /** Runs one change at a time, so that the record and the timer agree. */
  private readonly changes = new SerialQueue();
  private timer: NodeJS.Timeout | undefined;
  private readonly held = new Set<() => void>();
  private isClosed = false;

  constructor(store: FreezeStore) {
    this.store = store;
  }

  get isFrozen(): boolean {
    return this.timer !== undefined;
  }

  /**
   * Freezes for at most `ttlMs`, because the worker that has to thaw the site may die. A second call starts the time
   * again.
   */
  freeze(ttlMs: number): Promise<void> {
    return this.changes.run(async () => {
      await this.store.writeFreeze({ ttl_ms: ttlMs, ends_at: null });
      this.holdFor(ttlMs);
    });
  }

  /**
   * Freezes the site again if the site agent ended during a freeze. Call this before the site is served. The first
   * start begins the time once more, because the worker has to find the agent again. Later starts continue with the
   * time that remains.
   */
  resume(): Promise<void> {
    return this.changes.run(async () => {
      const kept = await this.store.readFreeze();
      if (kept === null) return;
      const { ttl_ms, ends_at } = kept;
      const now = Date.now();
      if (ends_at === null) await this.store.writeFreeze({ ttl_ms, ends_at: new Date(now + ttl_ms).toISOString() });
      const leftMs = ends_at === null ? ttl_ms : Math.min(Date.parse(ends_at) - now, ttl_ms);
      if (leftMs > 0) this.holdFor(leftMs);
      else await this.store.removeFreeze();
    });
  }

  thaw(): Promise<void> {
    return this.changes.run(async () => {
      await this.store.removeFreeze();
      this.letGo();
    });
  }

  /** Ends all waiting with an error, because nobody will thaw the gate any more. The freeze stays on disk. */
  close(): void {
    this.isClosed = true;
    this.letGo();
  }

  /**
   * Resolves when the gate is open. Throws {@link GateError} if too many wait already, after 20 s, if `signal` reports
   * that the client has left, or if the gate is closed.
   */
  async pass(signal: AbortSignal): Promise<void> {
    while (this.isFrozen) await this.hold(signal);
    if (this.isClosed) throw new GateError('closed');
  }

  /**
   * Holds a database client at the gate like {@link pass}. Resolves with null if the client may enter, or with the text
   * of a refusal.
   */
  async admit(client: Socket): Promise<string | null> {
    const left = new AbortController();
    client.once('close', () => left.abort());
    return this.pass(left.signal).then(
      () => null,
      (error: unknown) =>
        error instanceof GateError ? `the site is being restored (${error.message})` : 'not available',
    );
  }

  private holdFor(ttlMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.expire(), ttlMs);
  }

  /**
   * Thaws the site at the end of the time. If the record cannot be removed, the next start of the site agent may freeze
   * the site again.
   */
  private expire(): void {
    this.letGo();
    this.changes
      .run(async () => {
        if (!this.isFrozen) await this.store.removeFreeze();
      })
      .catch(() => undefined);
  }

  private letGo(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const held = [...this.held];
    this.held.clear();
    for (const go of held) go();
  }

  private hold(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(new GateError('the client left'));
    if (this.held.size >= heldMax) return Promise.reject(new GateError('too many wait'));
    return new Promise((resolve, reject) => {
      const leave = (why: string) => (): void => {
        stopWaiting();
        reject(new GateError(why));
      };
      const onAbort = leave('the client left');
      const timer = setTimeout(leave('frozen for too long'), heldMsMax);
      const go = (): void => {
        stopWaiting();
        resolve();
      };
      const stopWaiting = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.held.delete(go);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.held.add(go);
    });
  }
}
