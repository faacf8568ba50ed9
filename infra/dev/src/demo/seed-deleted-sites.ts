import { z } from 'zod';
import type { Api } from './api';
import { createSite, readSite } from './create-site';
import type { Demo } from './demo-file';
import { poll } from './poll';
import type { Seed, SeedContext } from './seed';
import { writeSiteFile } from './seed-sites';

const siteSchema = z.looseObject({ id: z.string(), status: z.string() });
const recordSchema = z.looseObject({
  id: z.string(),
  site_id: z.string(),
  primary_domain: z.string(),
  restored_at: z.string().nullable(),
  reason_code: z.string(),
});
type DeletedRecord = z.infer<typeof recordSchema>;
const listSchema = z.object({ data: z.array(recordSchema) });

type State = keyof NonNullable<Demo['deleted_sites']>;
const states: readonly State[] = [
  'restorable',
  'already_restored',
  'purged',
  'abuse_hold',
  'no_backup',
  'domain_in_use',
];

interface World extends Pick<SeedContext, 'describeSite' | 'hostingCommand'> {
  api: Api;
  /** The prefix of each domain, by which the two modes differ. */
  prefix: string;
}

/** Returns the record of the deleted site with this domain. If there is none, creates a site and deletes it. */
async function deletedOf(world: World, state: State, domain: string): Promise<DeletedRecord> {
  const { api, describeSite } = world;
  const find = async () =>
    listSchema.parse((await api('/v1/sites/deleted')).body).data.find((found) => found.primary_domain === domain) ??
    null;
  const there = await find();
  if (there !== null) return there;
  // Drydock has no backups of a site at a vendor. So a deleted site of that platform has the state `no_backup`.
  const platform = state === 'no_backup' ? 'vendor' : 'local';
  const wanted = { name: `Deleted: ${state}`, domain, key: domain, platform } as const;
  const id = await createSite(api, wanted, async () => (await find()) !== null);
  if ((await readSite(api, id)).status === 'active') {
    if (platform === 'local') {
      const { files_dir: filesDir } = await describeSite(id);
      await writeSiteFile(
        filesDir,
        'index.html',
        `<!doctype html>\n<title>${domain}</title>\n<h1>${domain} is back</h1>\n`,
      );
    }
    await api(`/v1/sites/${id}`, { method: 'DELETE' });
  }
  return poll(`Deleting ${domain}`, find);
}

/** Brings the record of a deleted site into `state`. Only `abuse_hold` and `purged` need a command of staff. */
async function seedState(world: World, state: State): Promise<string> {
  const { api, hostingCommand, prefix } = world;
  const domain = `${prefix}${state.replaceAll('_', '-')}.demo.test`;
  const record = await deletedOf(world, state, domain);
  const isThere = async () =>
    recordSchema.parse((await api(`/v1/sites/deleted/${record.id}`)).body).reason_code === state ? true : null;
  if (state === 'restorable' || state === 'no_backup' || (await isThere())) return record.id;
  if (state === 'abuse_hold') await hostingCommand('hold', record.id);
  if (state === 'purged') {
    // An interrupted seeding may have begun the same purge. If that purge ends before the command runs, the command
    // refuses, although the site is purged.
    await hostingCommand('purge', record.id).catch(async (error: unknown) => {
      if ((await isThere()) === null) throw error;
    });
  }
  if (state === 'domain_in_use') await createSite(api, { name: 'The new owner', domain, key: `${domain}-again` });
  if (state === 'already_restored') {
    await api(`/v1/sites/deleted/${record.id}/restore`, { method: 'POST', idempotencyKey: `demo-restore-${domain}` });
    await poll(`Bringing ${domain} back`, async () =>
      siteSchema.parse((await api(`/v1/sites/${record.site_id}`)).body).status === 'active' ? true : null,
    );
  }
  await poll(`${domain} becoming ${state}`, isThere);
  return record.id;
}

async function seedWorld(world: World): Promise<NonNullable<Demo['deleted_sites']>> {
  const ids = await Promise.all(states.map(async (state) => [state, await seedState(world, state)] as const));
  const idOf = new Map(ids);
  const of = (state: State): string => idOf.get(state) ?? '';
  return {
    restorable: of('restorable'),
    already_restored: of('already_restored'),
    purged: of('purged'),
    abuse_hold: of('abuse_hold'),
    no_backup: of('no_backup'),
    domain_in_use: of('domain_in_use'),
  };
}

/** Creates in each mode one deleted site for each of `states`. */
export const deletedSitesSeed: Seed = {
  title: 'Making deleted sites in every state',
  fields: ['deleted_sites'],
  seed: async ({ api, describeSite, hostingCommand, keep }) => {
    await seedWorld({ api: api('sandbox_key'), describeSite, hostingCommand, prefix: 'sandbox-' });
    keep({ deleted_sites: await seedWorld({ api: api('live_key'), describeSite, hostingCommand, prefix: '' }) });
  },
};
