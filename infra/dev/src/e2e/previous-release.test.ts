/**
 * Builds the previous release from its commit. This release must start with the data folder of the previous release.
 * The APIs of both releases must work at the same time on the same databases.
 *
 * @tier long
 * @processes
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { findFreePort } from '@drydock/process';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { until } from '@drydock/testing/wait';
import { type Demo, demoSchema } from '../demo/demo-file';
import { inRepo } from '../dev-config';
import { Tenant } from './tenant';
import { writeVersion } from './versioned-site';

/** The commit of the previous release. Each release writes its own commit here, for the next release. */
const previousRelease = 'ad1b204';
const services = ['keys', 'hosting', 'compute', 'agency', 'databases'] as const;
const buildMs = 900_000;
jest.setTimeout(1_800_000);

let folder: string;
let tree: string;
let stack: TestStack;
let demo: Demo;
let siteBackupId: string;
const beside: ChildProcess[] = [];

beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-release-'));
  fs.chmodSync(folder, 0o711);
  tree = path.join(folder, 'tree');
  const git = (...args: string[]): Buffer =>
    execFileSync('git', ['-c', 'safe.directory=*', '-c', 'advice.detachedHead=false', ...args]);
  git('clone', '--quiet', '--no-hardlinks', inRepo('.'), tree);
  git('-C', tree, 'checkout', '--quiet', previousRelease);
  execFileSync('npm', ['run', 'build'], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'], timeout: buildMs });
  const dataDir = path.join(folder, 'data');
  fs.mkdirSync(dataDir);
  const before = await startStack({ tree, dataDir });
  const tenant = new Tenant(before, before.demo.live_key);
  const [site] = before.demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  await writeVersion(site, 'old');
  siteBackupId = (await tenant.takeBackup(site.id)).id;
  await before.stop();
  stack = await startStack({ dataDir });
  demo = demoSchema.parse(stack.demo);
});
afterAll(async () => {
  for (const process of beside) process.kill('SIGKILL');
  await stack?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** Starts a process of the previous release with the environment of the same process of this release. */
async function startBeside(name: string, changes: Record<string, string> = {}): Promise<string> {
  const port = await findFreePort();
  const env = { ...stack.environment(name), ...changes, PORT: String(port) };
  const child = spawn(process.execPath, [path.join(tree, `services/${name}/dist/server.js`)], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  beside.push(child);
  const url = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${url}/readyz`)).ok;
  await until(isReady, { timeoutMs: 120_000, what: `the release before's ${name}` });
  return url;
}

const restoreSite = async (tenant: Tenant, id: string): Promise<string> => {
  const accepted = await tenant.must('POST', `/v1/sites/${id}/backups/restore`, { backup_id: siteBackupId });
  return (await tenant.follow(accepted.location)).status;
};

test('what the release before has backed up is restored by this one', async () => {
  const [site] = demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  await writeVersion(site, 'new');
  expect(await restoreSite(new Tenant(stack, demo.live_key), site.id)).toBe('succeeded');
  expect(await (await fetch(new URL('version.html', site.url))).text()).toBe('old/old');
});

test('APIs and a gateway of the release before take work on the migrated databases, and the workers of this one carry it out', async () => {
  const urls = await Promise.all(
    services.map(async (name) => [`${name.toUpperCase()}_URL`, await startBeside(name)] as const),
  );
  const base_url = await startBeside('gateway', Object.fromEntries(urls));
  const tenant = new Tenant({ ...stack, demo: { ...stack.demo, base_url } }, demo.live_key);
  const [site] = demo.sites;
  if (site === undefined) throw new Error('the demo has no site');
  await writeVersion(site, 'new');
  const database = demo.databases?.[0]?.id;
  const server = demo.servers?.[0];
  const board = demo.boards?.[0];
  const carryOut = async (route: string, body?: unknown): Promise<string> =>
    (await tenant.follow((await tenant.must('POST', route, body)).location)).status;
  const [restored, upgraded, rolledBack, deleted, minted, card] = await Promise.all([
    restoreSite(tenant, site.id),
    carryOut(`/v1/databases/${database}/backups`, {}).then(() =>
      carryOut(`/v1/databases/${database}/upgrade`, { engine_version: '17' }),
    ),
    carryOut(`/v1/compute/servers/${server?.id}/snapshots/${server?.snapshot_ids[0]}`),
    carryOut(`/v1/sites/deleted/${demo.deleted_sites?.restorable}/restore`),
    tenant.mintKey(['sites.view']),
    tenant.must('POST', `/v1/agency/boards/${board?.id}/cards/${board?.archived_card_ids[0]}/restore`),
  ]);
  expect({ restored, upgraded, rolledBack, deleted }).toEqual({
    restored: 'succeeded',
    upgraded: 'succeeded',
    rolledBack: 'succeeded',
    deleted: 'succeeded',
  });
  expect(await (await fetch(new URL('version.html', site.url))).text()).toBe('old/old');
  expect(card.status).toBe(200);
  // The previous release has minted the key, and this release accepts it.
  expect((await new Tenant(stack, minted).call('GET', '/v1/sites')).status).toBe(200);
});
