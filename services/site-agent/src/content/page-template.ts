/**
 * Pages are HTML with four instructions, whose results are always escaped:
 *   <?sql SELECT … ?>                                  the first column of the first row, or nothing
 *   <?each SELECT … ?> … {{column}} … <?end?>          once for each row
 *   <?each SELECT … ?> … <?none?> … <?end?>            and something else when there is no row
 */
export type PagePart =
  | { kind: 'html'; html: string }
  | { kind: 'value'; sql: string }
  | { kind: 'each'; sql: string; row: RowPart[]; none: string };
export type RowPart = { kind: 'html'; html: string } | { kind: 'column'; name: string };

/** An error in a page; the message is for the site's owner, in the log. */
export class PageError extends Error {
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
 * The instructions of a page, in order. The end of each is searched once, and not after the last one: a page of a
 * thousand beginnings without an end is read once.
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
