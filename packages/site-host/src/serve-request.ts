import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { readRange } from './byte-range';
import { contentTypeOf } from './content-types';
import { announceGeneration, forwardToApp } from './forward-to-app';
import { isTemplate } from './page-template';
import type { Release } from './release';
import { renderPage } from './render-page';
import { type Resolved, resolveFile } from './resolve-file';

/** Larger ones are no templates but data, and are streamed. */
const pageBytesMax = 1_048_576n;

export function sendText(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

function sendHtml(response: ServerResponse, html: string, isHead: boolean): void {
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-length': Buffer.byteLength(html), 'cache-control': 'no-store' };
  response.writeHead(200, headers);
  response.end(isHead ? undefined : html);
}

type File = Extract<Resolved, { kind: 'file' }>;

async function sendFile(request: IncomingMessage, response: ServerResponse, release: Release, file: File): Promise<void> {
  const size = Number(file.stats.size);
  const etag = `"${release.releaseId}-${file.stats.mtimeNs.toString(36)}-${size.toString(36)}"`;
  // A release may be replaced at any moment, so every use is checked.
  response.setHeader('etag', etag).setHeader('cache-control', 'no-cache').setHeader('accept-ranges', 'bytes');
  if (request.headers['if-none-match']?.split(/,\s*/).includes(etag)) {
    response.writeHead(304).end();
    return;
  }
  const isOtherVersion = request.headers['if-range'] !== undefined && request.headers['if-range'] !== etag;
  const range = isOtherVersion ? 'whole' : readRange(request.headers.range, size);
  if (range === 'unsatisfiable') {
    sendText(response, 416, 'Range not satisfiable\n', { 'content-range': `bytes */${size}` });
    return;
  }
  const { start, end } = range === 'whole' ? { start: 0, end: size - 1 } : range;
  const headers = { 'content-type': contentTypeOf(file.extension), 'content-length': end - start + 1 };
  if (range === 'whole') response.writeHead(200, headers);
  else response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end}/${size}` });
  if (request.method === 'HEAD' || size === 0) response.end();
  else await pipeline(file.handle.createReadStream({ start, end, autoClose: false }), response);
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';
const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?')[0] ?? '/';

/** Answers one request out of one release, whatever the site's pointer does meanwhile. */
export async function serveRequest(request: IncomingMessage, response: ServerResponse, release: Release, isProbe: boolean): Promise<void> {
  if (await release.app.isPresent()) return serveApp(request, response, release, isProbe);
  response.setHeader('x-content-type-options', 'nosniff');
  if (!isRead(request)) return sendText(response, 405, 'Method not allowed\n', { allow: 'GET, HEAD' });
  const found = await resolveFile(release.filesDir, pathOf(request));
  if (found.kind === 'none') return sendText(response, 404, 'Not found\n');
  if (found.kind === 'folder') return sendText(response, 308, '', { location: found.location });
  await sendFound(request, response, release, found);
}

/** What lies in public/ is sent as it is; the rest, its own code above all, is the application's to answer for. */
async function serveApp(request: IncomingMessage, response: ServerResponse, release: Release, isProbe: boolean): Promise<void> {
  // Asked whether the application runs, it has to run, whoever the page is from.
  if (isProbe) await announceGeneration(response, release.app);
  const found = isRead(request) ? await resolveFile(release.app.publicDir, pathOf(request)) : null;
  if (found?.kind === 'file') await sendFound(request, response, release, found);
  else await forwardToApp(request, response, release.app, isProbe);
}

async function sendFound(request: IncomingMessage, response: ServerResponse, release: Release, found: File): Promise<void> {
  try {
    if (found.extension === '.html' && found.stats.size <= pageBytesMax) {
      const page = await found.handle.readFile('utf8');
      if (isTemplate(page)) return sendHtml(response, await renderPage(release, page), request.method === 'HEAD');
    }
    await sendFile(request, response, release, found);
  } finally {
    await found.handle.close();
  }
}
