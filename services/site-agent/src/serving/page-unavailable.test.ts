/** @processes */
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startPostgres } from '@drydock/postgres';
import { claim, clearHost, hostConfig, newSiteId, startHost } from '../../test/host';

test('a page whose Postgres is away answers 503 with Retry-After, its files as ever, and is back with its Postgres', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-away-'));
  const first = await startPostgres({ folder });
  const host = await startHost({ ...(await hostConfig()), SITES_DATABASE_URL: first.adminUrl });
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await writeFile(path.join(site.files_dir, 'page.html'), '<?sql select 7 ?>');
  await writeFile(path.join(site.files_dir, 'file.txt'), 'a file');
  const ask = (name: string): Promise<Response> => fetch(new URL(name, site.url));
  expect(await (await ask('page.html')).text()).toBe('7');
  await first.stop();
  const away = await ask('page.html');
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '2']);
  expect(await (await ask('file.txt')).text()).toBe('a file');
  const again = await startPostgres({ folder, port: first.port });
  expect(await (await ask('page.html')).text()).toBe('7');
  await clearHost(host, [siteId]);
  await again.stop();
  rmSync(folder, { recursive: true, force: true });
});
