/** Lets a loop pause. A pause ends when the bell is rung, or when its time is over. */
export class Bell {
  private isRung = false;
  private endRest: () => void = () => undefined;
  private readonly stopping: AbortSignal;

  /** Aborting `stopping` ends every pause. */
  constructor(stopping: AbortSignal) {
    this.stopping = stopping;
  }

  /** Ends the running pause, or the next one if none is running. Several calls before the next pause count as one. */
  ring(): void {
    this.isRung = true;
    this.endRest();
  }

  /**
   * Resolves after `restMs` milliseconds. A ring ends the pause sooner, but not before `leastMs`, so that constant
   * ringing does not keep the loop busy. A pause does not keep the process alive.
   */
  async pause(leastMs: number, restMs: number): Promise<void> {
    await this.sleep(Math.min(leastMs, restMs));
    if (!this.isRung)
      await this.sleep(restMs - leastMs, (end) => {
        this.endRest = end;
      });
    this.isRung = false;
  }

  private async sleep(ms: number, canEnd: (end: () => void) => void = () => undefined): Promise<void> {
    const { stopping } = this;
    if (stopping.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        stopping.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms).unref();
      stopping.addEventListener('abort', end);
      canEnd(end);
    });
  }
}
