import type pg from 'pg';
import { z } from 'zod';
import { escapeHtml, PageError, type PagePart, parsePage, type RowPart } from './page-template';
import type { Release } from './release';

const rowsMax = 1_000;
/** Every value as Postgres writes it. */
const asText = { getTypeParser: () => (value: string | Buffer) => String(value) };
const rowsSchema = z.array(z.record(z.string(), z.string().nullable()));

async function select(client: pg.PoolClient, sql: string): Promise<{ rows: Record<string, string | null>[]; first: string }> {
  // The extended protocol takes one statement only: a page cannot end the transaction and go on.
  const query: pg.QueryConfig & { queryMode: 'extended' } = { text: sql, types: asText, queryMode: 'extended' };
  const answer = await client.query(query);
  return { rows: rowsSchema.parse(answer.rows.slice(0, rowsMax)), first: answer.fields[0]?.name ?? '' };
}

function renderRow(parts: RowPart[], row: Record<string, string | null>): string {
  const render = (part: RowPart): string => {
    if (part.kind === 'html') return part.html;
    if (!Object.hasOwn(row, part.name)) throw new PageError(`the query gives no column ${part.name}`);
    return escapeHtml(row[part.name] ?? '');
  };
  return parts.map(render).join('');
}

async function renderPart(client: pg.PoolClient, part: PagePart): Promise<string> {
  if (part.kind === 'html') return part.html;
  const { rows, first } = await select(client, part.sql);
  if (part.kind === 'value') return escapeHtml(rows[0]?.[first] ?? '');
  return rows.length === 0 ? part.none : rows.map((row) => renderRow(part.row, row)).join('');
}

/** The page as HTML: every query in one read-only transaction on the database of the release that the page is from. */
export async function renderPage(release: Release, page: string): Promise<string> {
  const parts = parsePage(page);
  return release.readOnly(async (client) => {
    const rendered: string[] = [];
    for (const part of parts) rendered.push(await renderPart(client, part));
    return rendered.join('');
  });
}
