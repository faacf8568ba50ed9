import { z } from 'zod';
import { type Api, apiOf } from './api';
import { type Demo, demoSchema, type PartialDemo, readDemo, readPartial, writeDemo, writePartial } from './demo-file';
import { type SitePlace, seedSites } from './seed-sites';

export interface Bootstrapped {
  org_id: string;
  key_id: string;
  token: string;
}

export interface DemoContext {
  dataDir: string;
  /** Of the gateway. */
  baseUrl: string;
  processesFile: string;
  /** Where a site lives on its host, asked of the site host: the public API does not tell folders or passwords. */
  describeSite(siteId: string): Promise<SitePlace>;
  /** Runs the keys service's command: a root organisation of that name and its first key. */
  bootstrap(name: string): Promise<Bootstrapped>;
  /** One line for the terminal. */
  say(line: string): void;
}

const mintedSchema = z.looseObject({ token: z.string() });
const orgSchema = z.looseObject({ id: z.string() });
const meSchema = z.looseObject({ scopes: z.array(z.string()) });

async function mint(api: Api, name: string, body: Record<string, unknown>): Promise<string> {
  const { body: key } = await api('/v1/api-keys', { method: 'POST', body: { name, ...body }, idempotencyKey: `demo-${name}` });
  return mintedSchema.parse(key).token;
}

/** Organisations and keys: one root with a child, a key of each kind, and an organisation that has nothing to do with it. */
async function seedKeys(context: DemoContext, demo: PartialDemo, keep: (more: PartialDemo) => void): Promise<void> {
  if (demo.staff_key === undefined) {
    const first = await context.bootstrap('Demo Hosting');
    keep({ staff_key: first.token, org_id: first.org_id });
  }
  if (demo.other_org_key === undefined) keep({ other_org_key: (await context.bootstrap('Another Company')).token });
  const api = apiOf(context.baseUrl, demo.staff_key ?? '');
  const held = meSchema.parse((await api('/v1/me')).body).scopes;
  const scopes = held.filter((scope) => scope !== 'platform.staff');
  if (demo.live_key === undefined) keep({ live_key: await mint(api, 'demo-live', { scopes }) });
  if (demo.sandbox_key === undefined) keep({ sandbox_key: await mint(api, 'demo-sandbox', { scopes, sandbox: true }) });
  if (demo.child_org_id === undefined) {
    const child = await api('/v1/orgs', {
      method: 'POST',
      body: { name: 'Demo Reseller', permissions: scopes },
      idempotencyKey: 'demo-child',
    });
    keep({ child_org_id: orgSchema.parse(child.body).id });
  }
}

/** Makes the demo content once; a call that finds it made only brings the addresses up to date. */
export async function seedDemo(context: DemoContext): Promise<Demo> {
  const addresses = { base_url: context.baseUrl, processes_file: context.processesFile };
  const made = readDemo(context.dataDir);
  if (made !== null) {
    const demo = { ...made, ...addresses };
    writeDemo(context.dataDir, demo);
    return demo;
  }
  const demo: PartialDemo = { ...readPartial(context.dataDir), ...addresses };
  const keep = (more: PartialDemo): void => {
    Object.assign(demo, more);
    writePartial(context.dataDir, demo);
  };
  context.say('Making organisations and keys');
  await seedKeys(context, demo, keep);
  context.say('Making two sites and a first backup of each');
  const sites = await seedSites(apiOf(context.baseUrl, demo.live_key ?? ''), context.describeSite);
  const whole = demoSchema.parse({ ...demo, sites });
  writeDemo(context.dataDir, whole);
  return whole;
}
