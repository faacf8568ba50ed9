import { hasAlready } from '@drydock/service/http/entity-tag';
import { type Exchange, headOf } from './exchange';
import type { Page } from './pages/page';

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
