import { z } from 'zod';
import type { Api } from './api';
import type { Seed } from './seed';

const mintedSchema = z.looseObject({ token: z.string() });
const orgSchema = z.looseObject({ id: z.string() });
const meSchema = z.looseObject({ scopes: z.array(z.string()) });

async function mint(api: Api, name: string, body: Record<string, unknown>): Promise<string> {
  const { body: key } = await api('/v1/api-keys', {
    method: 'POST',
    body: { name, ...body },
    idempotencyKey: `demo-${name}`,
  });
  return mintedSchema.parse(key).token;
}

/** Creates an organisation with a child, a key for staff, a live key and a sandbox key, and a second organisation. */
export const keysSeed: Seed = {
  title: 'Making organisations and keys',
  fields: ['staff_key', 'org_id', 'other_org_key', 'live_key', 'sandbox_key', 'child_org_id'],
  seed: async ({ demo, keep, api: apiBy, bootstrap }) => {
    if (demo.staff_key === undefined) {
      const first = await bootstrap('Demo Hosting');
      keep({ staff_key: first.token, org_id: first.org_id });
    }
    if (demo.other_org_key === undefined) keep({ other_org_key: (await bootstrap('Another Company')).token });
    const api = apiBy('staff_key');
    const held = meSchema.parse((await api('/v1/me')).body).scopes;
    const scopes = held.filter((scope) => scope !== 'platform.staff');
    if (demo.live_key === undefined) keep({ live_key: await mint(api, 'demo-live', { scopes }) });
    if (demo.sandbox_key === undefined)
      keep({ sandbox_key: await mint(api, 'demo-sandbox', { scopes, sandbox: true }) });
    if (demo.child_org_id !== undefined) return;
    const body = { name: 'Demo Reseller', permissions: scopes };
    const child = await api('/v1/orgs', { method: 'POST', body, idempotencyKey: 'demo-child' });
    keep({ child_org_id: orgSchema.parse(child.body).id });
  },
};
