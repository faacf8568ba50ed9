import { errorCodeOf } from '@drydock/process';
import { openPageSessions, type PageSessions, type QueryRows } from './page-sessions';
import type { Found } from './protocol';

/**
 * Pages are HTML with four instructions, whose results are always escaped:
 *   <?sql SELECT … ?>                                  the first column of the first row, or nothing
 *   <?each SELECT … ?> … {{column}} … <?end?>          once for each row
 *   <?each SELECT … ?> … <?none?> … <?end?>            and something else when there is no row
 */
type PagePart =
  | { kind: 'html'; html: string }
  | { kind: 'value'; sql: string }
  | { kind: 'each'; sql: string; row: RowPart[]; none: string };
type RowPart = { kind: 'html'; html: string } | { kind: 'column'; name: string };

/** An error in a page. The visitor does not get its message. */
class PageError extends Error {
  override readonly name = 'PageError';
}

const opening = /<\?(sql|each|none|end)\b/g;
const column = /\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/g;

export const isTemplate = (html: string): boolean => /<\?(?:sql|each)\b/.test(html);

function parseRow(html: string): RowPart[] {
  const parts: RowPart[] = [];
  let at = 0;
  for (const match of html.matchAll(column)) {
    parts.push({ kind: 'html', html: html.slice(at, match.index) }, { kind: 'column', name: match[1] ?? '' });
    at = match.index + match[0].length;
  }
  return [...parts, { kind: 'html', html: html.slice(at) }];
}

function checkSql(sql: string): string {
  const trimmed = sql.trim();
  if (!/^(?:select|with|values|table)\b/i.test(trimmed)) throw new PageError('an instruction must be a SELECT');
  return trimmed;
}

/**
 * Yields the instructions of a page, in order. Stops at the first instruction without an end. Otherwise a page with a
 * thousand beginnings and no end would be searched a thousand times.
 */
function* instructionsOf(page: string): Generator<{ name: string; sql: string; start: number; end: number }> {
  opening.lastIndex = 0;
  for (let match = opening.exec(page); match !== null; match = opening.exec(page)) {
    const sqlStart = opening.lastIndex;
    const sqlEnd = page.indexOf('?>', sqlStart);
    if (sqlEnd === -1) return;
    yield { name: match[1] ?? '', sql: page.slice(sqlStart, sqlEnd), start: match.index, end: sqlEnd + 2 };
    opening.lastIndex = sqlEnd + 2;
  }
}

/** Throws {@link PageError} for blocks that are nested or not closed, and for queries that are no SELECT. */
export function parsePage(page: string): PagePart[] {
  const parts: PagePart[] = [];
  let at = 0;
  let open: { sql: string; row: string | null } | null = null;
  for (const { name, sql, start, end } of instructionsOf(page)) {
    const before = page.slice(at, start);
    at = end;
    if (open === null) {
      parts.push({ kind: 'html', html: before });
      if (name === 'sql') parts.push({ kind: 'value', sql: checkSql(sql) });
      else if (name === 'each') open = { sql: checkSql(sql), row: null };
      else throw new PageError(`<?${name}?> without <?each?>`);
    } else if (name === 'none' && open.row === null) open.row = before;
    else if (name === 'end') {
      parts.push({
        kind: 'each',
        sql: open.sql,
        row: parseRow(open.row ?? before),
        none: open.row === null ? '' : before,
      });
      open = null;
    } else throw new PageError(`<?${name}?> within <?each?>`);
  }
  if (open !== null) throw new PageError('<?each?> without <?end?>');
  return [...parts, { kind: 'html', html: page.slice(at) }];
}

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => escapes[character] ?? character);

const pageMs = 8_000;
/**
 * Limit for the bytes that all queries of one page may return, and for the size of the rendered page. No result is read
 * beyond the limit.
 */
const bytesMax = 8 * 2 ** 20;

/**
 * Errors of Postgres and of MariaDB for a server that starts, stops, cannot be reached or has no connection left. The
 * same page may succeed a moment later.
 */
const unavailableCodes = new RegExp(
  '^(?:57P0[123]|53300|08...|ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|PROTOCOL_CONNECTION_LOST|' +
    'HANDSHAKE_UNKNOWN_ERROR|ER_CON_COUNT_ERROR|ER_SERVER_SHUTDOWN|ER_USER_LIMIT_REACHED|' +
    'ER_TOO_MANY_USER_CONNECTIONS)$',
);
const unavailableTexts = /Connection terminated|Connection lost|timeout exceeded when trying to connect/;

/** Reports the child's database sessions to the site agent. */
export interface SessionEvents {
  onOpen(number: number): void;
  /**
   * Reports a session for which nobody waits any more, so that the site agent ends it. The session's statement may have
   * lifted its own time limit.
   */
  onOverrun(number: number): void;
}

/** Renders pages, each in one read-only transaction, so that a page shows the database at a single moment. */
export class PageRenderer {
  private readonly sessions: Promise<PageSessions>;
  private readonly events: SessionEvents;

  constructor(databaseUrl: string, events: SessionEvents) {
    this.events = events;
    this.sessions = openPageSessions(databaseUrl, (number) => events.onOpen(number));
  }

  /** Renders a page. Never throws: if a page cannot be shown, the result says why. */
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
    const session = await (await this.sessions).take();
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

/** Renders the parts. `results` has one result for each part that is not HTML, in the same order. */
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
