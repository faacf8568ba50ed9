import type { Socket } from 'node:net';

const heldMax = 2_000;
/** Longer than most switches take, shorter than most clients wait. */
const heldMsMax = 20_000;

/** The reason why a waiting request was not served. */
export class GateError extends Error {
  override readonly name = 'GateError';
}

/** While it is open, everybody passes. While it is frozen, they wait here, and are not refused, until it thaws. */
export class Gate {
  private timer: NodeJS.Timeout | undefined;
  private readonly held = new Set<() => void>();
  private isClosed = false;

  get isFrozen(): boolean {
    return this.timer !== undefined;
  }

  /**
   * Freezes for `ttlMs` at most, so that a worker that dies leaves no site frozen. A second call starts the time again.
   */
  freeze(ttlMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.thaw(), ttlMs);
  }

  thaw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const held = [...this.held];
    this.held.clear();
    for (const go of held) go();
  }

  /** Ends all waiting with an error: it will not be thawed any more. */
  close(): void {
    this.isClosed = true;
    this.thaw();
  }

  /**
   * Resolves when the gate is open. Throws {@link GateError} if too many wait already, after 20 s, or if `signal`
   * reports that the client has left.
   */
  async pass(signal: AbortSignal): Promise<void> {
    while (this.isFrozen) await this.hold(signal);
    if (this.isClosed) throw new GateError('closed');
  }

  /** The same for a database client. Resolves with the refusal in words for it; null if it may enter. */
  async admit(client: Socket): Promise<string | null> {
    const left = new AbortController();
    client.once('close', () => left.abort());
    return this.pass(left.signal).then(
      () => null,
      (error: unknown) =>
        error instanceof GateError ? `the site is being restored (${error.message})` : 'not available',
    );
  }

  private hold(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(new GateError('the client left'));
    if (this.held.size >= heldMax) return Promise.reject(new GateError('too many wait'));
    return new Promise((resolve, reject) => {
      const leave = (why: string) => (): void => {
        settle();
        reject(new GateError(why));
      };
      const onAbort = leave('the client left');
      const timer = setTimeout(leave('frozen for too long'), heldMsMax);
      const go = (): void => {
        settle();
        resolve();
      };
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.held.delete(go);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.held.add(go);
    });
  }
}
