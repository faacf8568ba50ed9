import { TransferError } from '../session/transfer-error';
import type { Section } from './section';

/**
 * Reads sections in the one order that a load accepts, so that the whole schema is judged before anything is executed.
 */
export class SectionReader {
  private readonly iterator: AsyncIterator<Section>;

  constructor(sections: AsyncIterable<Section>) {
    this.iterator = sections[Symbol.asyncIterator]();
  }

  /** The next section, which must have this path. Otherwise `dump_malformed`. */
  async expect(path: string): Promise<Section> {
    const next = await this.iterator.next();
    if (next.done === true) throw new TransferError('dump_malformed', `${path} is missing`);
    if (next.value.path !== path)
      throw new TransferError('dump_malformed', `expected ${path}, found ${next.value.path}`);
    return next.value;
  }

  async expectEnd(): Promise<void> {
    const next = await this.iterator.next();
    if (next.done !== true) throw new TransferError('dump_malformed', `unexpected ${next.value.path}`);
  }

  /** Lets the source clean up. Errors while it does so are ignored. */
  async close(): Promise<void> {
    await Promise.resolve(this.iterator.return?.()).catch(() => undefined);
  }
}
