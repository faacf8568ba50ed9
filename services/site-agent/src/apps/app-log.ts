import { type FileHandle, open, rename } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { SerialQueue } from '@drydock/agent/host';

const fileBytesMax = 1_048_576;
/** Limit for an application's output in one second. An application that prints more waits for the next second. */
const bytesPerSecond = 1_048_576;

/**
 * Keeps the last one to two megabytes of the output of a site's application, in the current file and the previous file.
 * A running application cannot make the files larger.
 */
export class AppLog {
  private readonly file: string;
  private readonly queue = new SerialQueue();
  private handle: FileHandle | null = null;
  private size = 0;
  private readers = 0;
  private second = 0;
  private inSecond = 0;

  constructor(file: string) {
    this.file = file;
  }

  /**
   * Writes the stream to the log. Resolves when the stream has ended and all its bytes are written. Never throws,
   * because an application must run even without its log.
   */
  async take(stream: Readable): Promise<void> {
    this.readers += 1;
    try {
      for await (const part of stream) {
        const bytes = Buffer.from(part);
        await this.queue.run(() => this.write(bytes)).catch(() => undefined);
        await this.pace(bytes.length);
      }
    } catch {
      // The process has ended, and the rest of its output is lost with it.
    } finally {
      this.readers -= 1;
      if (this.readers === 0) await this.queue.run(() => this.close());
    }
  }

  private async write(bytes: Buffer): Promise<void> {
    if (this.handle === null) {
      this.handle = await open(this.file, 'a', 0o600);
      this.size = (await this.handle.stat()).size;
    }
    if (this.size >= fileBytesMax) {
      await this.close();
      await rename(this.file, `${this.file}.1`);
      this.handle = await open(this.file, 'a', 0o600);
      this.size = 0;
    }
    await this.handle.write(bytes);
    this.size += bytes.length;
  }

  private async close(): Promise<void> {
    const { handle } = this;
    this.handle = null;
    await handle?.close();
  }

  private async pace(bytes: number): Promise<void> {
    const second = Math.floor(performance.now() / 1_000);
    if (second !== this.second) this.inSecond = 0;
    this.second = second;
    this.inSecond += bytes;
    if (this.inSecond > bytesPerSecond) await sleep(1_000 - (performance.now() % 1_000));
  }
}
