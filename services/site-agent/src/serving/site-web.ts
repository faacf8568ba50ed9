import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createHttpServer, inTurn } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { AppDown, DiskFull, SandboxUnavailable } from '../apps/site-app';
import type { RestOfFile } from '../content/content';
import { ContentError } from '../content/content-child';
import { PagesBusy } from '../content/page-places';
import type { Found, FoundFile } from '../content/protocol';
import type { Release } from '../releases/release-store';
import { AppVisit, announceGeneration, BodyStalled, type VisitorLimits } from './forward-to-app';
import { type Gate, GateError } from './gate';

/**
 * A page could not be rendered, for example because one of its queries failed. The visitor gets a 500 without the
 * reason.
 */
export class PageFailed extends Error {
  override readonly name = 'PageFailed';
}

/** The database of a page is not available at the moment. */
class PageUnavailable extends Error {
  override readonly name = 'PageUnavailable';
}

function sendText(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function leaveWhenSent(response: ServerResponse, { untakenMs }: VisitorLimits, leave: () => void): void {
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
  limits: VisitorLimits,
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
  if (leave !== null) giveBackWhenSent(response, limits, leave);
  const headers = { 'content-type': contentTypeOf(found.extension), 'content-length': end - start + 1 };
  if (range === 'whole') response.writeHead(200, headers);
  else response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end}/${size}` });
  if (isEmpty) response.end();
  else if (rest === null) response.end(body.subarray(start, end + 1));
  else await pipeline(bytesOf(body, rest, start, end), response);
}

function giveBackWhenSent(response: ServerResponse, { untakenMs }: VisitorLimits, leave: () => void): void {
  // The limit restarts with each byte that the visitor takes, because a whole file may take hours.
  response.setTimeout(untakenMs, () => response.destroy());
  if (response.destroyed) leave();
  else response.once('close', leave);
}

async function* bytesOf(body: Buffer, rest: RestOfFile, start: number, end: number): AsyncGenerator<Buffer> {
  const isHeld = start < body.length;
  if (isHeld) yield body.subarray(start, end + 1);
  yield* rest.read(isHeld ? body.length : start, end);
}

/** Limits how long the rest of a request may come after its answer. Node reads that rest and throws it away. */
function limitRest(request: IncomingMessage, { unsentMs }: VisitorLimits): void {
  const dropUnlessComplete = (): void => {
    if (!request.complete) request.socket.destroy();
  };
  if (!request.complete) setTimeout(dropUnlessComplete, unsentMs).unref();
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';
const pathOf = ({ url = '/' }: IncomingMessage): string => url.split('?')[0] ?? '/';

/** Answers a request from one release, even if another release becomes live meanwhile. */
async function serveRequest(
  request: IncomingMessage,
  response: ServerResponse,
  release: Release,
  { isProbe, limits }: { isProbe: boolean; limits: VisitorLimits },
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
  // A probe is not forwarded by the child, because its answer needs the header with the generation of the process.
  const due = isProbe ? null : release.app.due;
  const visited =
    due === null
      ? await content.visit(question)
      : await due.process.use(() =>
          content.visitApp(question, new AppVisit(request, response, due.process, limits), due.restart_seconds),
        );
  if (visited === null) return;
  const { visit, body, rest, leave } = visited;
  const { app, found } = visit;
  try {
    if (app !== null) {
      // A probe checks the application, so the application must run even if a file answers.
      if (isProbe) await announceGeneration(response, release.app, app);
      if (found.kind === 'none' || found.kind === 'folder') {
        const process = await release.app.take(app);
        return await process.use(() => content.forward(new AppVisit(request, response, process, limits)));
      }
    } else {
      response.setHeader('x-content-type-options', 'nosniff');
      if (!isRead(request)) return sendText(response, 405, 'Method not allowed\n', { allow: 'GET, HEAD' });
    }
    await sendFound(request, response, release, { found, body, rest }, limits);
  } finally {
    if (found.kind === 'page') leaveWhenSent(response, limits, leave);
    await rest?.close();
  }
}

async function sendFound(
  request: IncomingMessage,
  response: ServerResponse,
  release: Release,
  { found, body, rest }: { found: Found; body: Buffer; rest: RestOfFile | null },
  limits: VisitorLimits,
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
      return sendFile(request, response, release, { found, body, rest }, limits);
  }
}

export type ByteRange = { start: number; end: number } | 'whole' | 'unsatisfiable';

/**
 * Reads one range of a file by RFC 9110. `end` is inclusive. Several ranges, and text that is no byte range, count as
 * the whole file.
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

/**
 * Returns the content type for a lower-case extension with its dot. Browsers download a file with an unknown extension.
 */
const contentTypeOf = (extension: string): string => types[extension] ?? 'application/octet-stream';

const closeMs = 3_000;
/** The shortest time between two logged failures of a site, because its pages can fail at every request. */
const logEveryMs = 10_000;
const probeHeader = 'x-drydock-probe';

interface SiteWebOptions {
  gate: Gate;
  currentRelease: () => Release | null;
  limits: VisitorLimits;
  log: Log;
}

/**
 * A site's web server. Each request, except a probe, waits at the gate. Then it takes the live release once and is
 * answered from this release alone.
 */
export class SiteWeb {
  readonly server: Server;
  private readonly probeToken = randomBytes(24).toString('hex');
  private loggedMs = Number.NEGATIVE_INFINITY;
  private notLogged = 0;
  private readonly options: SiteWebOptions;

  constructor(options: SiteWebOptions) {
    this.options = options;
    const listener: RequestListener = (request, response) => {
      this.answer(request, response).catch((error: unknown) => this.fail(response, error));
    };
    // An upload may take long, so each pause in its body is limited instead of the whole request.
    this.server = createHttpServer(inTurn(listener), { requestMs: 0 });
  }

  /** Headers that let a request pass a freeze; only this process knows them. */
  get probeHeaders(): Record<string, string> {
    return { [probeHeader]: this.probeToken };
  }

  /** Closes the server. Running requests may take 3 s more. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeIdleConnections();
    const limit = setTimeout(() => this.server.closeAllConnections(), closeMs);
    await closed;
    clearTimeout(limit);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isProbe = this.isProbe(request);
    const { currentRelease, limits } = this.options;
    response.once('close', () => limitRest(request, limits));
    if (!isProbe) {
      const left = new AbortController();
      response.once('close', () => left.abort());
      await this.options.gate.pass(left.signal);
    }
    const release = currentRelease();
    if (release === null) sendText(response, 503, 'This site is being set up\n', { 'retry-after': '2' });
    else await release.use(() => serveRequest(request, response, release, { isProbe, limits }));
  }

  private isProbe(request: IncomingMessage): boolean {
    const given = Buffer.from(String(request.headers[probeHeader] ?? ''));
    const expected = Buffer.from(this.probeToken);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  private fail(response: ServerResponse, error: unknown): void {
    const isHeld = error instanceof GateError;
    const isDown = error instanceof AppDown;
    const isStalled = error instanceof BodyStalled;
    if (!isHeld && !isDown && !isStalled) this.logFailure(error);
    if (response.destroyed) return;
    // Once the status has been sent, only a cut connection can tell the client that the answer has failed.
    if (response.headersSent) response.destroy();
    else if (error instanceof SandboxUnavailable) {
      sendText(
        response,
        503,
        'This application is not started: nothing would keep it apart on this machine (sandbox_unavailable)\n',
      );
    } else if (error instanceof DiskFull)
      sendText(response, 503, 'This application is not started: its site has used up its disk space\n');
    else if (isDown) sendText(response, 502, 'This application could not be reached\n', { 'retry-after': '1' });
    else if (isStalled) sendText(response, 408, 'The rest of the request did not come\n', { connection: 'close' });
    else if (isHeld) sendText(response, 503, 'This site is being restored\n', { 'retry-after': '2' });
    else if (error instanceof PageUnavailable)
      sendText(response, 503, 'This page is away for a moment\n', { 'retry-after': '2' });
    else if (error instanceof PagesBusy)
      sendText(response, 503, 'Too many pages are being shown at once\n', { 'retry-after': '2' });
    else if (error instanceof ContentError)
      sendText(response, 503, 'This page could not be read\n', { 'retry-after': '2' });
    else sendText(response, 500, 'This page could not be shown\n');
  }

  /** Logs at most one failure in 10 s, with the number of failures that were not logged. */
  private logFailure(error: unknown): void {
    const nowMs = performance.now();
    if (nowMs - this.loggedMs < logEveryMs) {
      this.notLogged += 1;
      return;
    }
    this.options.log.warn({ err: error, not_logged_before: this.notLogged }, 'a page could not be answered');
    this.loggedMs = nowMs;
    this.notLogged = 0;
  }
}
