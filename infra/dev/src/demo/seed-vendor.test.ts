import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createVendorEmulator, emulatorAdmin } from '@drydock/emulators';
import { closeServer, listen } from '@drydock/service/http';
import type { Api } from './api';
import type { SeedContext } from './seed';
import { vendorSeed } from './seed-vendor';
import { vendorContentBefore, vendorContentNow } from './vendor-content';

const stateDir = mkdtempSync(path.join(os.tmpdir(), 'drydock-seed-vendor-'));
const server = createVendorEmulator({
  stateDir,
  keys: new Map([['live', 'key']]),
  adminToken: 'admin',
  clockScale: 1,
  jobSeconds: 0,
});
afterAll(async () => {
  server.closeAllConnections();
  await closeServer(server);
  rmSync(stateDir, { recursive: true, force: true });
});

/** Answers as the API does when the site has all its restore points. */
const api: Api = async (asked) => ({
  status: 200,
  body: asked.endsWith('/vendor-snapshots')
    ? { in_progress: false, mailboxes: [{ points: [{}] }] }
    : { id: 'site', status: 'active', created_at: new Date().toISOString() },
});

test('a start changes the vendor’s content if an earlier one ended after the restore points', async () => {
  const { url } = await listen(server, 0, '127.0.0.1');
  const admin = emulatorAdmin(url, 'admin');
  for (const domain of ['tea.demo.test', 'sandbox-tea.demo.test'])
    await fetch(`${url}/reseller/*/addWeb`, {
      method: 'POST',
      headers: { authorization: 'Bearer key' },
      body: JSON.stringify({ type: 'linux', domain_name: domain }),
    });
  const { packages } = (await admin.call('GET', 'packages')) as { packages: { id: number }[] };
  for (const { id } of packages) await admin.call('PUT', `packages/${id}/content`, vendorContentBefore);
  const kept: object[] = [];
  await vendorSeed.seed({
    api: () => api,
    vendor: { url, token: 'admin' },
    keep: (more: object) => kept.push(more),
  } satisfies Partial<SeedContext> as unknown as SeedContext);
  expect(kept).toEqual([{ vendor_site_id: 'site' }]);
  expect(packages).toHaveLength(2);
  for (const { id } of packages) expect(await admin.call('GET', `packages/${id}/content`)).toEqual(vendorContentNow);
});
