import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { RestOfFile } from '../content/content';
import type { Found, FoundFile } from '../content/protocol';
import type { Release } from '../releases/release-store';
import { AppVisit, announceGeneration, untakenMs } from './forward-to-app';

/** The queries of a page failed; the message is for the site's owner, in the log. */
export class PageFailed extends Error {
  override readonly name = 'PageFailed';
}

/** The database of a page is not available at the moment. */
export class PageUnavailable extends Error {
  override readonly name = 'PageUnavailable';
}

export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function leaveWhenSent(response: ServerResponse, leave: () => void): void {
  const timer = setTimeout(() => response.destroy(), untakenMs);
  const end = (): void => {
    clearTimeout(timer);
    leave();
  };
  if (response.destroyed || response.writableFinished) end();
  else response.once('close', end);
}

function sendHtml(response: ServerResponse, html: Buffer, isHead: boolean): void {
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-length': html.length,
    'cache-control': 'no-store',
  };
  response.writeHead(200, headers);
  response.end(isHead ? undefined : html);
}

interface File {
  found: FoundFile;
  /** The first bytes, if the whole file was requested. */
  body: Buffer;
  rest: RestOfFile | null;
}

async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  release: Release,
  { found, body, rest }: File,
): Promise<void> {
  const { size } = found;
  const etag = `"${release.releaseId}-${found.mtime}-${size.toString(36)}"`;
  // A release may be replaced at any moment, so clients have to revalidate each use.
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
  const isEmpty = request.method === 'HEAD' || size === 0;
  const leave = isEmpty || rest === null ? null : await release.content.download();
  if (leave !== null) giveBackWhenSent(response, leave);
  const headers = { 'content-type': contentTypeOf(found.extension), 'content-length': end - start + 1 };
  if (range === 'whole') response.writeHead(200, headers);
  else response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end}/${size}` });
  if (isEmpty) response.end();
  else if (rest === null) response.end(body.subarray(start, end + 1));
  else await pipeline(bytesOf(body, rest, start, end), response);
}

function giveBackWhenSent(response: ServerResponse, leave: () => void): void {
  // The time is measured from the last byte that the visitor has taken, because a file may take hours.
  response.setTimeout(untakenMs, () => response.destroy());
  if (response.destroyed) leave();
  else response.once('close', leave);
}

async function* bytesOf(body: Buffer, rest: RestOfFile, start: number, end: number): AsyncGenerator<Buffer> {
  const isHeld = start < body.length;
  if (isHeld) yield body.subarray(start, end + 1);
  yield* rest.read(isHeld ? body.length : start, end);
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';
const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?')[0] ?? '/';

/** Answers a request from one release, even if another release becomes live meanwhile. */
export async function serveRequest(
  request: IncomingMessage,
  response: ServerResponse,
  release: Release,
  isProbe: boolean,
): Promise<void> {
  const isWhole =
    request.method === 'GET' && request.headers.range === undefined && request.headers['if-none-match'] === undefined;
  const question = {
    path: pathOf(request),
    is_read: isRead(request),
    is_whole: isWhole,
    app_runs: release.app.running !== null,
  };
  const { content } = release;
  // A probe is told the process first, so it is never passed on to a running one at once.
  const due = isProbe ? null : release.app.due;
  const visited =
    due === null
      ? await content.visit(question)
      : await due.process.use(() =>
          content.visitApp(question, new AppVisit(request, response, due.process), due.restart_seconds),
        );
  if (visited === null) return;
  const { visit, body, rest, leave } = visited;
  const { app, found } = visit;
  try {
    if (app !== null) {
      // A probe asks whether the application runs, so it has to run, even if a file answers.
      if (isProbe) await announceGeneration(response, release.app, app);
      if (found.kind === 'none' || found.kind === 'folder') {
        const process = await release.app.take(app);
        return await process.use(() => content.forward(new AppVisit(request, response, process)));
      }
    } else {
      response.setHeader('x-content-type-options', 'nosniff');
      if (!isRead(request)) return sendText(response, 405, 'Method not allowed\n', { allow: 'GET, HEAD' });
    }
    await sendFound(request, response, release, { found, body, rest });
  } finally {
    if (found.kind === 'page') leaveWhenSent(response, leave);
    await rest?.close();
  }
}

async function sendFound(
  request: IncomingMessage,
  response: ServerResponse,
  release: Release,
  { found, body, rest }: { found: Found; body: Buffer; rest: RestOfFile | null },
): Promise<void> {
  switch (found.kind) {
    case 'none':
      return sendText(response, 404, 'Not found\n');
    case 'folder':
      return sendText(response, 308, '', { location: found.location });
    case 'page':
      return sendHtml(response, body, request.method === 'HEAD');
    case 'page_failed':
      throw found.is_unavailable ? new PageUnavailable(found.reason) : new PageFailed(found.reason);
    case 'page_waits':
      throw new PageUnavailable('a page was neither rendered nor refused');
    case 'file':
      return sendFile(request, response, release, { found, body, rest });
  }
}

export type ByteRange = { start: number; end: number } | 'whole' | 'unsatisfiable';

/**
 * One range of a file by RFC 9110. Several ranges, or text that is no byte range, are answered with the whole file.
 * `end` is inclusive.
 */
function readRange(header: string | undefined, size: number): ByteRange {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  const [first, last] = [match?.[1] ?? '', match?.[2] ?? ''];
  if (first === '' && last === '') return 'whole';
  if (first === '') {
    const suffix = Math.min(Number(last), size);
    return suffix === 0 ? 'unsatisfiable' : { start: size - suffix, end: size - 1 };
  }
  const start = Number(first);
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== '' && Number(last) < start) return 'whole';
  return start >= size ? 'unsatisfiable' : { start, end };
}

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.htm': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.xml': 'application/xml',
  '.txt': 'text/plain; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.csv': 'text/csv; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.avif': 'image/avif',
  '.ico': 'image/x-icon',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
  '.ttf': 'font/ttf',
  '.otf': 'font/otf',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.webm': 'video/webm',
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
  '.gz': 'application/gzip',
  '.wasm': 'application/wasm',
};

/** The content type for a lower-case extension with its dot. A file with an unknown extension is a download. */
const contentTypeOf = (extension: string): string => types[extension] ?? 'application/octet-stream';
