import { TransferError } from './transfer-error';

const rowBytesPerMs = 512;
const schemaBytesPerMs = 8;

/**
 * Limits the time of waiting for Postgres: a fixed time, and more for each transferred byte. The time is measured in
 * this process, because a customer's code can remove a session's limits. Time in which Postgres waits for this process
 * does not count.
 */
export class TimeBudget {
  private allowedMs: number;
  private spentMs = 0;
  private readonly onStalled: (error: TransferError) => void;

  /** `onStalled` must end every pending wait. */
  constructor(baseMs: number, onStalled: (error: TransferError) => void) {
    this.allowedMs = baseMs;
    this.onStalled = onStalled;
  }

  allowRows(bytes: number): void {
    this.allowedMs += bytes / rowBytesPerMs;
  }

  allowSchema(bytes: number): void {
    this.allowedMs += bytes / schemaBytesPerMs;
  }

  /** Yields rows, and extends the limit for each part. */
  async *counting(rows: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const part of rows) {
      this.allowRows(part.length);
      yield part;
    }
  }

  /** Waits for Postgres. Throws `stalled`, with the object, when the time is used up. */
  async spend<T>(object: string, work: Promise<T>): Promise<T> {
    const startedMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => {
          const error = new TransferError(
            'stalled',
            `${object} made no progress in ${Math.round(this.allowedMs / 1000)} s`,
            { object },
          );
          this.onStalled(error);
          reject(error);
        },
        Math.max(0, this.allowedMs - this.spentMs),
      );
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
      this.spentMs += performance.now() - startedMs;
    }
  }
}
