import { TransferError } from '../session/transfer-error';

/** A file of a dump. `content` can be read once. Contents of different sections may be read at the same time. */
export interface Section {
  path: string;
  content: AsyncIterable<Buffer>;
}

export const sectionPaths = {
  tables: 'tables.json',
  schemaPre: 'schema-pre.sql',
  schemaPost: 'schema-post.sql',
  properties: 'database.json',
  sequences: 'sequences.json',
  largeObjects: 'large-objects.bin',
  manifest: 'manifest.json',
} as const;

export const dataPath = (index: number): string => `data/${index}.copy`;

/** Reads a text section. Throws `dump_malformed` if it is longer than `bytesMax` or not UTF-8. */
export async function readText(section: Section, bytesMax: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of section.content) {
    bytes += part.length;
    if (bytes > bytesMax) throw new TransferError('dump_malformed', `${section.path} is longer than ${bytesMax} bytes`);
    parts.push(part);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
  } catch (error) {
    throw new TransferError('dump_malformed', `${section.path} is not UTF-8`, { cause: error });
  }
}

/** The size limit of a text section in bytes. A load holds the whole section in memory. */
export const textBytesMax = 64 * 2 ** 20;

/** A section of text. Reading it throws a permanent `dump_failed` if it is too long for a load. */
export function textSection(path: string, read: () => Promise<string>): Section {
  async function* content(): AsyncGenerator<Buffer> {
    const text = Buffer.from(await read());
    if (text.length > textBytesMax) {
      const mb = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`;
      const message =
        `the definitions of the database's objects are ${mb(text.length)} of text, ` +
        `and ${mb(textBytesMax)} can be restored`;
      throw new TransferError('dump_failed', message, { object: path, isPermanent: true });
    }
    yield text;
  }
  return { path, content: content() };
}

/** Reads sections in the only accepted order. So the whole schema is checked before any statement runs. */
export class SectionReader {
  private readonly iterator: AsyncIterator<Section>;

  constructor(sections: AsyncIterable<Section>) {
    this.iterator = sections[Symbol.asyncIterator]();
  }

  /** Returns the next section. Throws `dump_malformed` if its path differs. */
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

  /** Lets the source clean up, and ignores its errors. */
  async close(): Promise<void> {
    await Promise.resolve(this.iterator.return?.()).catch(() => undefined);
  }
}
