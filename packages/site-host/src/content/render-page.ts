import { Socket } from 'node:net';
import { errorCodeOf } from '@drydock/host-kit/error-code';
import pg from 'pg';
import { z } from 'zod';
import { escapeHtml, PageError, type PagePart, parsePage, type RowPart } from './page-template';
import type { Found } from './protocol';

const connectionsMax = 5;
const statementMs = 2_000;
const pageMs = 8_000;
const rowsMax = 1_000;
/** How many bytes all queries of one page may send, and how large the page may become. Beyond it nothing more is read. */
const bytesMax = 8 * 2 ** 20;

/** Every value as Postgres writes it. */
const asText = { getTypeParser: () => (value: string | Buffer) => String(value) };
const rowsSchema = z.array(z.record(z.string(), z.string().nullable()));
type Row = Record<string, string | null>;

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
    // Whoever waits for an answer is told of it as well.
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

/** Asks for the first rows and takes no more, where pg would fetch the rest in portions. */
class FirstRows extends pg.Query {
  handlePortalSuspended(connection: { sync(): void }): void {
    connection.sync();
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
      await client.query('begin isolation level repeatable read read only');
      const rendered: string[] = [];
      for (const part of parts) rendered.push(await renderPart(client, part));
      await client.query('rollback');
      // A page may have called set_config: the next one starts afresh.
      await client.query('discard all');
      isClean = true;
      return rendered.join('');
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

async function renderPart(client: pg.Client, part: PagePart): Promise<string> {
  if (part.kind === 'html') return part.html;
  const { rows, first } = await select(client, part.sql);
  if (part.kind === 'value') return escapeHtml(rows[0]?.[first] ?? '');
  return rows.length === 0 ? part.none : rows.map((row) => renderRow(part.row, row)).join('');
}

async function select(client: pg.Client, sql: string): Promise<{ rows: Row[]; first: string }> {
  // Again before each: the statement before may have changed it.
  await client.query(`set local statement_timeout = ${statementMs}`);
  // The extended protocol takes one statement only: a page cannot end the transaction and go on.
  const config = { text: sql, types: asText, queryMode: 'extended', rows: rowsMax };
  const answer = await new Promise<pg.QueryResult>((resolve, reject) => {
    client.query(new FirstRows(config, [], (error, result) => (error ? reject(error) : resolve(result))));
  });
  return { rows: rowsSchema.parse(answer.rows), first: answer.fields[0]?.name ?? '' };
}

function renderRow(parts: RowPart[], row: Row): string {
  const render = (part: RowPart): string => {
    if (part.kind === 'html') return part.html;
    if (!Object.hasOwn(row, part.name)) throw new PageError(`the query gives no column ${part.name}`);
    return escapeHtml(row[part.name] ?? '');
  };
  return parts.map(render).join('');
}
