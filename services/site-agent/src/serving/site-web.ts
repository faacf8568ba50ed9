import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createHttpServer } from '@drydock/service/http';
import type { Log } from '@drydock/service/telemetry';
import { AppDown, DiskFull, SandboxUnavailable } from '../apps/app-runner';
import { ContentError } from '../content/content-child';
import { PagesBusy } from '../content/page-places';
import type { Release } from '../releases/release-store';
import { type Gate, GateError } from './gate';
import { PageUnavailable, sendText, serveRequest } from './serve-request';

const closeMs = 3_000;
/** A site's pages can fail at every request, so failures are logged at most this often. */
const logEveryMs = 10_000;
const probeHeader = 'x-drydock-probe';

/**
 * A site's web server. Each request waits at the gate, then takes the live release once and is answered from it alone.
 */
export class SiteWeb {
  readonly server: Server;
  private readonly probeToken = randomBytes(24).toString('hex');
  private loggedMs = Number.NEGATIVE_INFINITY;
  private notLogged = 0;
  private readonly options: { gate: Gate; currentRelease: () => Release | null; log: Log };

  constructor(options: { gate: Gate; currentRelease: () => Release | null; log: Log }) {
    this.options = options;
    this.server = createHttpServer((request, response) => {
      this.answer(request, response).catch((error: unknown) => this.fail(response, error));
    });
  }

  /** Headers that let a request pass a freeze; only this process knows them. */
  get probeHeaders(): Record<string, string> {
    return { [probeHeader]: this.probeToken };
  }

  /** Closes the server, and lets running requests end for at most 3 s. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeIdleConnections();
    const limit = setTimeout(() => this.server.closeAllConnections(), closeMs);
    await closed;
    clearTimeout(limit);
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isProbe = this.isProbe(request);
    if (!isProbe) {
      const left = new AbortController();
      response.once('close', () => left.abort());
      await this.options.gate.pass(left.signal);
    }
    const release = this.options.currentRelease();
    if (release === null) sendText(response, 503, 'This site is being set up\n', { 'retry-after': '2' });
    else await release.use(() => serveRequest(request, response, release, isProbe));
  }

  private isProbe(request: IncomingMessage): boolean {
    const given = Buffer.from(String(request.headers[probeHeader] ?? ''));
    const expected = Buffer.from(this.probeToken);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  private fail(response: ServerResponse, error: unknown): void {
    const isHeld = error instanceof GateError;
    const isDown = error instanceof AppDown;
    if (!isHeld && !isDown) this.logFailure(error);
    if (response.destroyed) return;
    // Once the head is sent, the status cannot be changed any more: the client must see that the body is cut off.
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
    else if (isHeld) sendText(response, 503, 'This site is being restored\n', { 'retry-after': '2' });
    else if (error instanceof PageUnavailable)
      sendText(response, 503, 'This page is away for a moment\n', { 'retry-after': '2' });
    else if (error instanceof PagesBusy)
      sendText(response, 503, 'Too many pages are being shown at once\n', { 'retry-after': '2' });
    else if (error instanceof ContentError)
      sendText(response, 503, 'This page could not be read\n', { 'retry-after': '2' });
    else sendText(response, 500, 'This page could not be shown\n');
  }

  /** Logs one failure in 10 s and counts the others in between. */
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
