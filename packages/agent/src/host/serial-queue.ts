/**
 * Runs one piece of work after the other, in the order in which they were requested. If a piece of work fails, the next
 * still runs.
 */
export class SerialQueue {
  private last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const next = this.last.then(work);
    this.last = next.catch(() => undefined);
    return next;
  }
}
