import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { entityTagOf } from '@drydock/service/http';

export interface Page {
  status: number;
  contentType: 'application/json' | 'image/svg+xml' | `text/${'html' | 'css' | 'javascript'}; charset=utf-8`;
  text: string | Buffer;
  /** The Content-Security-Policy; without one, `strictPolicy`. */
  contentPolicy?: string;
  /** The target of a redirect. */
  location?: string;
  /** The compressed forms of a page that is the same for everybody. */
  kept?: { etag: string; br: Buffer; gzip: Buffer };
}

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/**
 * Compresses a large page that is the same for everybody, once and off the event loop, and gives it a tag from its
 * content, so that a client which has it gets 304.
 */
export async function keepPage({ text, ...page }: Page): Promise<Page> {
  const bytes = Buffer.from(text);
  // Weak, because it is the same for all encodings of the page.
  const etag = `W/${entityTagOf(bytes)}`;
  const [br, gzipped] = await Promise.all([
    compressBrotli(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
    compressGzip(bytes),
  ]);
  return { ...page, text: bytes, kept: { etag, br, gzip: gzipped } };
}

/** Makes a page at its first request, because most gateways never get one, and keeps it. A failure is not kept. */
export function keptOnce(make: () => Page | Promise<Page>): () => Promise<Page> {
  let made: Promise<Page> | undefined;
  const makeAndKeep = async (): Promise<Page> => {
    try {
      return await keepPage(await make());
    } catch (error) {
      made = undefined;
      throw error;
    }
  };
  return () => {
    made ??= makeAndKeep();
    return made;
  };
}

export const jsonPage = (value: unknown): Page => ({
  status: 200,
  contentType: 'application/json',
  text: JSON.stringify(value),
});

/** Programs get JSON by asking for it; a client without a preference gets the page. */
export const wantsJson = (accept: string | undefined): boolean =>
  (accept ?? '').includes('application/json') && !(accept ?? '').includes('text/html');
