/**
 * Runs whole stacks on other versions of Node.
 *
 * @tier long
 * @processes
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { siteBackupSurfaceSchema } from '@drydock/contracts/hosting/backups';
import { startStack, type TestStack } from '@drydock/testing/stack';
import { Customer } from './customer';

/** The package of npm that contains the program of Node for this platform. */
const nodePackage = `node-${process.platform}-${process.arch}`;

describe.each([22, 24])('all of Drydock on Node %i', (major) => {
  let folder: string;
  let version: string;
  let stack: TestStack | undefined;
  let customer: Customer;
  jest.setTimeout(600_000);

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'drydock-node-'));
    const node = path.join(folder, 'node_modules', nodePackage, 'bin/node');
    execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `${nodePackage}@${major}`], {
      stdio: 'pipe',
    });
    version = execFileSync(node, ['--version'], { encoding: 'utf8' });
    stack = await startStack({ node, environment: { DRYDOCK_DEMO: 'sites' } });
    customer = new Customer(stack.demo.base_url, stack.demo.live_key);
  });
  afterAll(async () => {
    await stack?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a site is served and restored', async () => {
    expect(version).toMatch(new RegExp(`^v${major}\\.`));
    const site = stack?.demo.sites[0];
    expect((await fetch(site?.url ?? '')).status).toBe(200);
    const surface = siteBackupSurfaceSchema.parse((await customer.call('GET', `/v1/sites/${site?.id}/backups`)).body);
    const accepted = await customer.insist('POST', `/v1/sites/${site?.id}/backups/restore`, {
      backup_id: surface.backups[0]?.id,
    });
    expect((await customer.follow(accepted.headers.get('location') ?? '')).status).toBe('succeeded');
    expect((await fetch(site?.url ?? '')).status).toBe(200);
  });
});
