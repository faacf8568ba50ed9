import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { entityTagOf, hasAlready } from '@drydock/service/http/entity-tag';
import { type Exchange, headOf } from '../exchange';

export interface Page {
  status: number;
  contentType: 'application/json' | 'image/svg+xml' | `text/${'html' | 'css' | 'javascript'}; charset=utf-8`;
  text: string | Buffer;
  /** The Content-Security-Policy; without one, `strictPolicy`. */
  contentPolicy?: string;
  /** Where a redirect leads. */
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

/** Loads nothing, and may not be in a frame. */
const strictPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function sendPage(exchange: Exchange, page: Page, isClosing: boolean): void {
  const { method, headers } = exchange.request;
  const kept = page.kept;
  const own = ['Content-Security-Policy', page.contentPolicy ?? strictPolicy, 'X-Content-Type-Options', 'nosniff'];
  own.push('Referrer-Policy', 'no-referrer', 'Vary', 'Accept, Accept-Encoding');
  own.push('Cache-Control', kept === undefined ? 'no-store' : 'no-cache');
  if (page.location !== undefined) own.push('Location', page.location);
  if (kept !== undefined) own.push('ETag', kept.etag);
  if (kept !== undefined && hasAlready(headers['if-none-match'], kept.etag)) {
    exchange.response.writeHead(304, headOf(exchange, isClosing, own));
    exchange.response.end();
    return;
  }
  const encoding = kept === undefined ? undefined : encodingFor(headers['accept-encoding']);
  const body = encoding === undefined ? page.text : (kept?.[encoding] ?? page.text);
  own.push('Content-Type', page.contentType, 'Content-Length', String(Buffer.byteLength(body)));
  if (encoding !== undefined) own.push('Content-Encoding', encoding);
  exchange.response.writeHead(page.status, headOf(exchange, isClosing, own));
  exchange.response.end(method === 'HEAD' ? undefined : body);
}

/** The smallest encoding that the client accepts. */
function encodingFor(accepted: string | string[] | undefined): 'br' | 'gzip' | undefined {
  const taken = String(accepted ?? '')
    .toLowerCase()
    .split(',')
    .flatMap((one) => {
      const [name = '', ...parameters] = one.split(';').map((part) => part.trim());
      return parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter)) ? [] : [name];
    });
  return (['br', 'gzip'] as const).find((name) => taken.includes(name));
}

export const jsonPage = (value: unknown): Page => ({
  status: 200,
  contentType: 'application/json',
  text: JSON.stringify(value),
});

/** Programs get JSON by asking for it; a client without a preference gets the page. */
export const wantsJson = (accept: string | undefined): boolean =>
  (accept ?? '').includes('application/json') && !(accept ?? '').includes('text/html');
