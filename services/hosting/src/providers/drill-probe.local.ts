import { createHash } from 'node:crypto';
import type { SiteHostClient } from '@drydock/site-host/client';
import pg from 'pg';
import { request } from 'undici';
import type { DrillProbe } from './drill-probe';

const undefinedTable = '42P01';
const answerMs = 30_000;

export function localDrillProbe(client: SiteHostClient): DrillProbe {
  return {
    hashServed: async ({ siteId }, path, signal) => {
      const { url } = await client.readSite(siteId, signal);
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
      const { statusCode, body } = await request(new URL(path, url), { signal: deadline });
      const hash = createHash('sha256');
      for await (const piece of body) hash.update(piece);
      return statusCode === 200 ? hash.digest('hex') : null;
    },
    countRows: async ({ siteId }, { schema, name }, signal) => {
      const { database_url: connectionString } = await client.readSite(siteId, signal);
      const connection = new pg.Client({ connectionString, connectionTimeoutMillis: answerMs, statement_timeout: answerMs });
      connection.on('error', () => undefined);
      await connection.connect();
      try {
        const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
        const { rows } = await connection.query<{ count: string }>(`SELECT count(*) FROM ONLY ${table}`);
        return Number(rows[0]?.count ?? 0);
      } catch (error) {
        if (error instanceof pg.DatabaseError && error.code === undefinedTable) return null;
        throw error;
      } finally {
        await connection.end();
      }
    },
  };
}
