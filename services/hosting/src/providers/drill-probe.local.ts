import { createHash } from 'node:crypto';
import type { SiteHostClient } from '@drydock/agent/site/client';
import { request } from 'undici';
import type { DrillProbe } from './site-host';

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
    countRows: ({ siteId }, table, { fence, workflowId, signal }) =>
      client.countRows(siteId, table, { fence, workflowId, signal }),
  };
}
