import { ArchiveError, type ArchiveReason } from '../src/format/archive-error';
import type { ArchiveSink, ArchiveSource } from '../src/format/archive-objects';

/** Objects in memory, whose bytes a test may change. */
export class MemoryArchive implements ArchiveSink, ArchiveSource {
  readonly objects = new Map<string, Buffer>();

  async write(name: string, bytes: Buffer): Promise<void> {
    this.objects.set(name, Buffer.from(bytes));
  }

  async read(name: string): Promise<Buffer> {
    const bytes = this.objects.get(name);
    if (bytes === undefined) throw new ArchiveError('missing', `object ${name} is missing`);
    return Buffer.from(bytes);
  }

  /** Returns a copy in which one object is replaced. */
  with(name: string, change: (bytes: Buffer) => Buffer): MemoryArchive {
    const copy = new MemoryArchive();
    for (const [key, bytes] of this.objects) copy.objects.set(key, bytes);
    copy.objects.set(name, change(Buffer.from(this.objects.get(name) ?? Buffer.alloc(0))));
    return copy;
  }
}

/**
 * Returns the reason of the ArchiveError with which a promise rejects. Fails if the promise does not reject, or rejects
 * with another error.
 */
export async function reasonOf(promise: Promise<unknown>): Promise<ArchiveReason> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ArchiveError) return error.reason;
    throw error;
  }
  throw new Error('was not refused');
}
