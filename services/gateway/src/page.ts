import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { type Exchange, headOf } from './exchange';

export interface Page {
  status: number;
  contentType: 'application/json' | 'text/html; charset=utf-8';
  text: string | Buffer;
  /** Of a page that is the same for everybody. */
  kept?: { etag: string; br: Buffer; gzip: Buffer };
}

/** A large page that is the same for everybody: compressed once, and named by its content, so that a client which has it gets 304. */
export function keepPage({ text, ...page }: Page): Page {
  const bytes = Buffer.from(text);
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`;
  const br = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } });
  return { ...page, text: bytes, kept: { etag, br, gzip: gzipSync(bytes) } };
}

/** Nothing from elsewhere, no script, in nobody's frame. */
const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function sendPage(exchange: Exchange, page: Page, isClosing: boolean): void {
  const { method, headers } = exchange.request;
  const kept = page.kept;
  const own = ['Content-Security-Policy', contentPolicy, 'X-Content-Type-Options', 'nosniff', 'Vary', 'Accept, Accept-Encoding'];
  own.push('Cache-Control', kept === undefined ? 'no-store' : 'no-cache');
  if (kept !== undefined) own.push('ETag', kept.etag);
  if (kept !== undefined && namesEtag(headers['if-none-match'], kept.etag)) {
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

/** Whether `If-None-Match` names the page; compared weakly, as RFC 9110 has it. */
const namesEtag = (given: string | undefined, etag: string): boolean =>
  (given ?? '').split(',').some((one) => one.trim() === '*' || `W/${one.trim().replace(/^W\//, '')}` === etag);

/** The smaller one of those that the client takes. */
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

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

const style = `:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:2.5rem auto;padding:0 1.2rem}
h1{font-size:1.7rem}h2{margin-top:2.4rem;border-bottom:1px solid #8885;padding-bottom:.3rem}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:#8881;padding:.8rem;border-radius:6px;overflow:auto}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid #8883}
a{color:#0b62c4}@media(prefers-color-scheme:dark){a{color:#7ab8ff}}nav a{margin-right:1rem}.method{font-weight:700;display:inline-block;min-width:4.2rem}
details{margin:.5rem 0}summary{cursor:pointer;padding:.3rem 0}`;

/** A whole HTML page; `title` is text, `body` is HTML. */
export const htmlPage = (title: string, body: string): Page => ({
  status: 200,
  contentType: 'text/html; charset=utf-8',
  text: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)} · Drydock</title>
<style>${style}</style></head>
<body><nav><a href="/docs">API</a><a href="/problems">Problems</a><a href="/openapi.json">OpenAPI</a></nav><main>${body}</main></body></html>
`,
});

export const jsonPage = (value: unknown): Page => ({ status: 200, contentType: 'application/json', text: JSON.stringify(value) });

/** Where somebody lands who knows only our address. */
export function frontPage(accept: string | undefined): Page {
  if (wantsJson(accept)) return jsonPage({ documentation: '/docs', openapi: '/openapi.json', problems: '/problems' });
  return htmlPage('Drydock', '<h1>Drydock</h1><p>This is an API. <a href="/docs">Its documentation</a> lists every endpoint.</p>');
}

/** Programs get JSON by asking for it; whoever asks for nothing in particular gets the page. */
export const wantsJson = (accept: string | undefined): boolean =>
  (accept ?? '').includes('application/json') && !(accept ?? '').includes('text/html');
