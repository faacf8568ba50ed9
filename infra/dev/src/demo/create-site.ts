import { z } from 'zod';
import type { Api } from './api';
import { makeAnew, problemOf } from './make-anew';
import { poll } from './poll';

const siteSchema = z.looseObject({ id: z.string(), status: z.string(), created_at: z.string() });

export interface WantedSite {
  name: string;
  domain: string;
  /** The last part of the idempotency key. Default: the domain. */
  key?: string;
  platform?: 'local' | 'vendor';
}

const sitesSchema = z.object({ data: z.array(z.looseObject({ id: z.string(), primary_domain: z.string() })) });

/**
 * Returns the id of the site with this domain. An earlier start may have created the site more than a day ago. The API
 * has then forgotten the idempotency key of that creation.
 */
async function findSite(api: Api, domain: string): Promise<string | undefined> {
  const { body } = await api(`/v1/sites?limit=100&text=${encodeURIComponent(domain)}`);
  return sitesSchema.parse(body).data.find(({ primary_domain }) => primary_domain === domain)?.id;
}

/**
 * Creates a site, or finds it by its idempotency key or its domain. Resolves with its id when the site is active, or
 * when `isOver` returns true. @throws with the reason if the site cannot be created
 */
export async function createSite(
  api: Api,
  { name, domain, key = domain, platform }: WantedSite,
  isOver: () => Promise<boolean> = async () => false,
): Promise<string> {
  const body = { name, primary_domain: domain, ...(platform === undefined ? {} : { platform }) };
  const id = await makeAnew(
    `demo-site-${key}`,
    (idempotencyKey) =>
      api('/v1/sites', { method: 'POST', body, idempotencyKey }).then(
        (answer) => siteSchema.parse(answer.body).id,
        async (error: unknown) => {
          const there = String(error).includes('"/problems/domain_in_use"') ? await findSite(api, domain) : undefined;
          if (there === undefined) throw error;
          return there;
        },
      ),
    async (made) => {
      const { status, created_at } = await readSite(api, made);
      return status === 'failed' ? created_at : null;
    },
  );
  await poll(`Creating ${name}`, async () => {
    if (await isOver()) return true;
    const { status } = await readSite(api, id);
    if (status === 'failed')
      throw new Error(`${name} could not be created: ${await problemOf(api, `/v1/sites/${id}`)}`);
    return status === 'active' ? true : null;
  });
  return id;
}

/**
 * Reads a site. If the API answers 404, the status is `gone`: an interrupted seeding may already have deleted the site.
 */
export const readSite = (api: Api, id: string): Promise<{ status: string; created_at: string }> =>
  api(`/v1/sites/${id}`).then(
    ({ body }) => siteSchema.parse(body),
    (error: unknown) => {
      if (String(error).includes(' answered 404')) return { status: 'gone', created_at: '' };
      throw error;
    },
  );
