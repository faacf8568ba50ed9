// A peer for the benchmark `pages`. ROLE chooses a bare express.static, or a bare Express app that reads the rows of
// `query` through a connection pool and renders them. The page of the measured site has the same query.
import express from 'express';
import pg from 'pg';

const rowLimit = 10;
export const query = `select title, body from posts order by id desc limit ${rowLimit}`;

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: unknown): string =>
  String(text).replace(/[&<>"']/g, (character) => escapes[character] ?? character);

function servesFiles(): express.Express {
  return express().use(express.static(process.env['FILES_DIR'] ?? ''));
}

function servesPages(): express.Express {
  const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 5 });
  return express().get('/', async (_request, response) => {
    const { rows } = await pool.query(query);
    const list = rows.map(({ title, body }) => `<li><b>${escaped(title)}</b> ${escaped(body)}</li>`).join('\n');
    response.type('html').send(`<!doctype html><title>Posts</title><ul>${list}</ul>`);
  });
}

const roles: Record<string, () => express.Express> = { 'express.static': servesFiles, 'express and pg': servesPages };

const role = roles[process.env['ROLE'] ?? ''];
if (role !== undefined) role().listen(Number(process.env['PORT']), '127.0.0.1');
