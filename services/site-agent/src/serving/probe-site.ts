import type { ProbeAnswer } from '@drydock/agent/site';
import { timeLimit } from '@drydock/process';
import { request } from 'undici';
import type { ReleaseDatabase } from '../database/release-database';

const usualDeadlineMs = 8_000;
/** The header that tells which process of the site's application has answered. Only a probe gets it. */
export const generationHeader = 'x-drydock-app-generation';

/**
 * Probes a site as its visitors and its application use it: by HTTP at its own port, and by SQL as its own role. Never
 * throws.
 */
export async function probeSite(
  target: { url: string; headers: Record<string, string>; database: Pick<ReleaseDatabase, 'probe'> },
  deadlineMs = usualDeadlineMs,
): Promise<ProbeAnswer> {
  const [http, sql] = await Promise.all([
    probeHttp(target.url, target.headers, deadlineMs),
    target.database.probe(deadlineMs),
  ]);
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
    const response = await request(url, {
      headers: { ...headers, connection: 'close' },
      signal: timeLimit(deadlineMs),
    });
    await response.body.dump();
    const generation = response.headers[generationHeader];
    return {
      status: response.statusCode,
      generation: generation === undefined ? null : Number(generation),
      detail: null,
    };
  } catch (error) {
    return {
      status: null,
      generation: null,
      detail: `http: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}
