import { Socket } from 'node:net';
import { errorCodeOf } from '@drydock/process/error-code';
import pg from 'pg';
import { type QueryRows, runPageQueries } from './page-queries';
import { escapeHtml, PageError, type PagePart, parsePage, type RowPart } from './page-template';
import type { Found } from './protocol';

const connectionsMax = 5;
const pageMs = 8_000;
/** How many bytes all queries of one page may send, and how large the page may become. Beyond it nothing more is read. */
const bytesMax = 8 * 2 ** 20;

/** Postgres starts, stops, is away or is full: the page can be had in a moment. */
const unavailableCodes = /^(?:57P0[123]|53300|08...|ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT)$/;
const unavailableTexts = /Connection terminated|timeout exceeded when trying to connect/;

/** A connection that counts what it is sent: a value of a gigabyte never becomes one in memory. */
class CountedClient extends pg.Client {
  private readonly socket: Socket;
  private left = Number.POSITIVE_INFINITY;
  hasOverflowed = false;

  constructor(config?: string | pg.ClientConfig) {
    const socket = new Socket();
    super({ ...(typeof config === 'object' ? config : {}), stream: () => socket });
    this.socket = socket;
    // The query that waits for an answer gets the error too.
    this.on('error', () => undefined);
    socket.on('data', (piece: Buffer) => {
      this.left -= piece.length;
      if (this.left >= 0) return;
      this.hasOverflowed = true;
      socket.destroy();
    });
  }

  /** From now on; beyond it the connection is broken off. */
  allowBytes(bytes: number): void {
    this.left = bytes;
  }

  breakOff(): void {
    this.socket.destroy();
  }

  /** The session's number at the server; pg keeps it without telling its types. */
  get backendPid(): number {
    return 'processID' in this && typeof this.processID === 'number' ? this.processID : 0;
  }
}

/** What the host is told about the child's sessions. */
export interface SessionEvents {
  onOpen(backendPid: number): void;
  /** Nobody waits for this one any more, and its statement may lift every limit: only a superuser's word ends it. */
  onOverrun(backendPid: number): void;
}

/** Renders pages, each in one read-only transaction of the site's own role, so that all of a page shows one moment. */
export class PageRenderer {
  private readonly pool: pg.Pool;
  private readonly events: SessionEvents;

  constructor(databaseUrl: string, events: SessionEvents) {
    this.events = events;
    this.pool = new pg.Pool({
      connectionString: databaseUrl,
      max: connectionsMax,
      connectionTimeoutMillis: 2_000,
      idleTimeoutMillis: 10_000,
      application_name: 'site pages',
      Client: CountedClient,
    });
    // A connection that breaks while idle is replaced at the next page.
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => {
      if (client instanceof CountedClient) events.onOpen(client.backendPid);
    });
  }

  /** Never throws: a page that cannot be shown says why. */
  async render(page: string): Promise<{ found: Found; body?: Buffer }> {
    try {
      const html = Buffer.from(await this.renderParts(parsePage(page)));
      if (html.length > bytesMax) throw new PageError(`the page has more than ${bytesMax} bytes`);
      return { found: { kind: 'page' }, body: html };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const isUnavailable = unavailableCodes.test(errorCodeOf(error)) || unavailableTexts.test(reason);
      return { found: { kind: 'page_failed', is_unavailable: isUnavailable, reason } };
    }
  }

  private async renderParts(parts: PagePart[]): Promise<string> {
    const client = await this.pool.connect();
    if (!(client instanceof CountedClient)) throw new Error('the pool has connections of its own making');
    client.allowBytes(bytesMax);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.events.onOverrun(client.backendPid);
      client.breakOff();
    }, pageMs);
    let isClean = false;
    try {
      const results = await runPageQueries(
        client,
        parts.flatMap((part) => (part.kind === 'html' ? [] : [part.sql])),
      );
      isClean = true;
      return renderAll(parts, results);
    } catch (error) {
      if (isLate) throw new PageError(`the page took more than ${pageMs} ms`);
      if (client.hasOverflowed) {
        this.events.onOverrun(client.backendPid);
        throw new PageError(`the page's queries give more than ${bytesMax} bytes`);
      }
      throw error;
    } finally {
      clearTimeout(timer);
      client.allowBytes(Number.POSITIVE_INFINITY);
      client.release(!isClean);
    }
  }
}

/** Each part that is not HTML takes the next result. */
function renderAll(parts: PagePart[], results: readonly QueryRows[]): string {
  let taken = 0;
  const render = (part: PagePart): string => {
    if (part.kind === 'html') return part.html;
    const { columns, rows } = results[taken++] ?? { columns: new Map(), rows: [] };
    if (part.kind === 'value') return escapeHtml(rows[0]?.[0] ?? '');
    return rows.length === 0 ? part.none : rows.map((row) => renderRow(part.row, columns, row)).join('');
  };
  return parts.map(render).join('');
}

function renderRow(parts: RowPart[], columns: Map<string, number>, row: (string | null)[]): string {
  const render = (part: RowPart): string => {
    if (part.kind === 'html') return part.html;
    const place = columns.get(part.name);
    if (place === undefined) throw new PageError(`the query gives no column ${part.name}`);
    return escapeHtml(row[place] ?? '');
  };
  return parts.map(render).join('');
}
