import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { claim, clearHost, hostConfig, newSiteId, startHost } from '../test/host';

// Simulates a machine without isolation, or with isolation but no networks for boxes. The machines that run the test
// have both.
let hasBoxes = false;
const actual = jest.requireActual<typeof import('@drydock/process')>('@drydock/process');
jest.mock('@drydock/process', () => ({
  ...jest.requireActual<typeof import('@drydock/process')>('@drydock/process'),
  detectIsolation: () =>
    hasBoxes ? actual.detectIsolation() : Promise.resolve({ kind: 'none', reason: 'unshare failed' }),
  detectBoxNetwork: () => Promise.resolve({ kind: 'machine', reason: 'unshare failed' }),
}));
afterEach(() => {
  hasBoxes = false;
});

const app = "require('http').createServer((_, answer) => answer.end('runs')).listen(1)";

test('where nothing keeps sites apart, files are served and applications are refused', async () => {
  const host = await startHost(await hostConfig());
  const [siteId, appId] = [newSiteId(), newSiteId()];
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await writeFile(path.join(site.files_dir, 'index.html'), '<?sql select 7 ?>');
  expect(await (await fetch(site.url)).text()).toBe('7');
  const withApp = await host.client.ensureSite(appId, { domain: 'b.org' }, claim(1));
  await writeFile(path.join(withApp.files_dir, 'app.js'), app);
  const answer = await fetch(withApp.url);
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('sandbox_unavailable')]);
  expect(await host.client.readApp(appId)).toMatchObject({ has_app: true, refusal: 'sandbox_unavailable', pid: null });
  await expect(host.client.restartApp(appId, claim(2))).rejects.toMatchObject({ code: 'sandbox_unavailable' });
  await clearHost(host, [siteId, appId]);
});

test('a setting that names its risk lets a developer run their own applications', async () => {
  const host = await startHost({
    ...(await hostConfig()),
    DRYDOCK_RUN_APPS_WITHOUT_ISOLATION: 'sites-may-take-over-this-machine',
  });
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await writeFile(path.join(site.files_dir, 'app.js'), app);
  expect(await (await fetch(site.url)).text()).toBe('runs');
  await clearHost(host, [siteId]);
});

test('where a box can have no network of its own, its application uses the machine’s network', async () => {
  hasBoxes = true;
  const host = await startHost(await hostConfig());
  const siteId = newSiteId();
  const site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  const source = `const found = [require('fs').readdirSync('/site').join(), require('fs').readFileSync('/proc/net/dev', 'utf8').split(':').length > 2];
    require('http').createServer((_, answer) => answer.end(JSON.stringify(found))).listen(1)`;
  await writeFile(path.join(site.files_dir, 'app.js'), source);
  expect(await (await fetch(site.url)).json()).toEqual(['app.js', true]);
  await clearHost(host, [siteId]);
});
