import type { ProbeAnswer } from '@drydock/agent/site/protocol';
import pg from 'pg';
import { request } from 'undici';

const usualDeadlineMs = 8_000;
/** Tells a probe, and nobody else, which process of the site's application has answered. */
export const generationHeader = 'x-drydock-app-generation';

/** Asks a site as its visitors and its application do: by HTTP at its own port, and by SQL as its own role. Never throws. */
export async function probeSite(
  target: { url: string; headers: Record<string, string>; databaseUrl: string },
  deadlineMs = usualDeadlineMs,
): Promise<ProbeAnswer> {
  const [http, sql] = await Promise.all([probeHttp(target.url, target.headers, deadlineMs), probeSql(target.databaseUrl, deadlineMs)]);
  const { status: http_status, generation: app_generation } = http;
  const detail = [http.detail, sql.detail].filter((text) => text !== null).join('; ');
  return { http_status, app_generation, sql_ok: sql.detail === null, sql_answered: sql.isAnswered, detail };
}

interface HttpProbe {
  status: number | null;
  generation: number | null;
  detail: string | null;
}

async function probeHttp(url: string, headers: Record<string, string>, deadlineMs: number): Promise<HttpProbe> {
  try {
    const response = await request(url, { headers: { ...headers, connection: 'close' }, signal: AbortSignal.timeout(deadlineMs) });
    await response.body.dump();
    const generation = response.headers[generationHeader];
    return { status: response.statusCode, generation: generation === undefined ? null : Number(generation), detail: null };
  } catch (error) {
    return { status: null, generation: null, detail: `http: ${error instanceof Error ? error.message : String(error)}` };
  }
}

interface SqlProbe {
  isAnswered: boolean;
  detail: string | null;
}

async function probeSql(url: string, deadlineMs: number): Promise<SqlProbe> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: deadlineMs, query_timeout: deadlineMs });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select count(*) from pg_catalog.pg_class');
    return { isAnswered: true, detail: null };
  } catch (error) {
    const detail = `sql: ${error instanceof Error ? error.message : String(error)}`;
    return { isAnswered: error instanceof pg.DatabaseError && !isPassing(error.code ?? ''), detail };
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The server starts, stops or has no connection left: class 57P, 53 and 08 of SQLSTATE. */
const isPassing = (sqlState: string): boolean => /^(57P|53|08)/.test(sqlState);
