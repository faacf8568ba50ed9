import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { entityTagOf } from '@drydock/service/http';

export interface Page {
  status: number;
  contentType: 'application/json' | 'image/svg+xml' | `text/${'html' | 'css' | 'javascript'}; charset=utf-8`;
  text: string | Buffer;
  /** The Content-Security-Policy. Without one the page is sent with `strictPolicy` (app.ts). */
  contentPolicy?: string;
  location?: string;
  /** The entity tag and the compressed forms of a page that is the same for everybody. */
  kept?: { etag: string; br: Buffer; gzip: Buffer };
}

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/**
 * Compresses a page that is the same for everybody, off the event loop. The page also gets an entity tag from its
 * content, so that a client that has the page receives 304.
 */
export async function keepPage({ text, ...page }: Page): Promise<Page> {
  const bytes = Buffer.from(text);
  // The tag is weak, because all encodings of the page share it.
  const etag = `W/${entityTagOf(bytes)}`;
  const [br, gzipped] = await Promise.all([
    compressBrotli(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
    compressGzip(bytes),
  ]);
  return { ...page, text: bytes, kept: { etag, br, gzip: gzipped } };
}

/** Makes a page at its first request and keeps it. A failure is not kept. */
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

/** Whether the client gets JSON: it must ask for JSON and not for HTML. A client without a preference gets HTML. */
export const wantsJson = (accept: string | undefined): boolean =>
  (accept ?? '').includes('application/json') && !(accept ?? '').includes('text/html');

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

/**
 * The content policy of the documentation's pages. They load only their own style, script, pictures and search index.
 * Inline code and other origins are refused.
 */
const ownPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

export interface Layout {
  /** The title as plain text. */
  title: string;
  /** The content of the page as HTML. */
  body: string;
  /** Further HTML for the head of the page. */
  head?: string;
  part: 'reference' | 'guides' | 'problems';
  contentPolicy?: string;
}

/** A whole HTML page in the common layout, with the bar that links to the parts of the documentation. */
export function htmlPage({ title, body, head = '', part, contentPolicy = ownPolicy }: Layout): Page {
  const link = (to: typeof part, href: string, text: string): string =>
    `<a href="${href}"${to === part ? ' aria-current="true"' : ''}>${text}</a>`;
  const text = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Drydock</title><link rel="icon" type="image/svg+xml" href="/docs/drydock.svg">
<link rel="stylesheet" href="/docs/page.css"><script src="/docs/page.js"></script>${head}</head>
<body><header class="dd-bar"><a class="dd-home" href="/docs" aria-label="Drydock">\
<img src="/docs/drydock.svg" alt="" width="24" height="24"><span>Drydock</span></a>
<nav aria-label="Documentation">${link('reference', '/docs', 'Reference')}\
${link('guides', '/docs/guides', 'Guides')}${link('problems', '/problems', 'Problems')}</nav>
<search class="dd-search" hidden><input type="search" placeholder="Search the guides" \
aria-label="Search the guides" aria-controls="dd-found" autocomplete="off" spellcheck="false">
<div id="dd-found" class="dd-found" hidden><p role="status"></p><ul></ul></div></search>
<button class="dd-mode" type="button" aria-label="Light or dark" title="Light or dark"></button></header>
${body}</body></html>
`;
  return { status: 200, contentType: 'text/html; charset=utf-8', text, contentPolicy };
}

export const prosePage = ({ body, ...layout }: Layout): Page =>
  htmlPage({ ...layout, body: `<main class="dd-page">${body}</main>` });
