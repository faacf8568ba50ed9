/**
 * A whole stack, called by the README of the client.
 * `npm run test:all` runs it on the stack of whole-stack.test.ts; by itself it has a stack of its own.
 *
 * @tier chaos
 * @processes
 */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { TestStack } from '@drydock/testing/stack';
import { startStack } from './one-stack';

const repository = path.resolve(__dirname, '../../../..');

describe('@drydock/client', () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await startStack({ environment: { DRYDOCK_DEMO: 'sites' } });
  }, 300_000);
  afterAll(() => stack.stop());

  test('the examples of its README run one after the other against the demo', async () => {
    const readme = fs.readFileSync(path.join(repository, 'packages/client/README.md'), 'utf8');
    const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code);
    expect(blocks.length).toBeGreaterThan(4);
    const env = { PATH: process.env['PATH'], DRYDOCK_URL: stack.demo.base_url, DRYDOCK_KEY: stack.demo.live_key };
    // From this folder, so that the package is found by its name.
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', blocks.join('\n')], {
      cwd: __dirname,
      env,
      timeout: 140_000,
    });
    expect(stdout).toContain(', live\n');
    expect(stdout).toMatch(/running, \d+ %\n(?:.*\n)*succeeded, 100 %\n/);
    expect(stdout).toContain('backup_not_found ');
  });
});
