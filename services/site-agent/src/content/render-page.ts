import { errorCodeOf } from '@drydock/process';
import { openPageSessions, type PageSessions, type QueryRows } from './page-sessions';
import { escapeHtml, PageError, type PagePart, parsePage, type RowPart } from './page-template';
import type { Found } from './protocol';

const pageMs = 8_000;
/**
 * Limit for the bytes that all queries of one page may return, and for the size of the page. Beyond it nothing more is
 * read.
 */
const bytesMax = 8 * 2 ** 20;

/**
 * Errors of Postgres and of MariaDB for a server that starts, stops, is away or is full: the page can be had in a
 * moment.
 */
const unavailableCodes = new RegExp(
  '^(?:57P0[123]|53300|08...|ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|PROTOCOL_CONNECTION_LOST|' +
    'HANDSHAKE_UNKNOWN_ERROR|ER_CON_COUNT_ERROR|ER_SERVER_SHUTDOWN|ER_USER_LIMIT_REACHED|' +
    'ER_TOO_MANY_USER_CONNECTIONS)$',
);
const unavailableTexts = /Connection terminated|Connection lost|timeout exceeded when trying to connect/;

/** Tells the host about the child's sessions. */
export interface SessionEvents {
  onOpen(number: number): void;
  /**
   * Reports a session for which nobody waits any more. Its statement may run without limits, and only a superuser can
   * end it.
   */
  onOverrun(number: number): void;
}

/** Renders pages, each in one read-only transaction of the site's own role, so that a page shows a single moment. */
export class PageRenderer {
  private readonly sessions: PageSessions;
  private readonly events: SessionEvents;

  constructor(databaseUrl: string, events: SessionEvents) {
    this.events = events;
    this.sessions = openPageSessions(databaseUrl, (number) => events.onOpen(number));
  }

  /** Renders a page. Never throws: a page that cannot be shown says why. */
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
    const session = await this.sessions.take();
    session.allowBytes(bytesMax);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.events.onOverrun(session.number);
      session.breakOff();
    }, pageMs);
    let isClean = false;
    try {
      const queries = parts.flatMap((part) => (part.kind === 'html' ? [] : [part.sql]));
      const results = await session.run(queries);
      isClean = true;
      return renderAll(parts, results);
    } catch (error) {
      if (isLate) throw new PageError(`the page took more than ${pageMs} ms`);
      if (session.hasOverflowed()) {
        this.events.onOverrun(session.number);
        throw new PageError(`the page's queries give more than ${bytesMax} bytes`);
      }
      throw error;
    } finally {
      clearTimeout(timer);
      session.allowBytes(Number.POSITIVE_INFINITY);
      session.giveBack(isClean);
    }
  }
}

/** Each part that is not HTML uses the next result. */
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
