/** @processes */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inRepo } from './dev-config';

const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-help-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * Runs the program without settings, by default in an empty folder. A file in that folder afterwards proves that the
 * program did more than print its help.
 */
const run = (program: string, argument: string, cwd = folder) =>
  spawnSync(process.execPath, [inRepo(program), argument], {
    cwd,
    env: { PATH: process.env['PATH'] },
    encoding: 'utf8',
    timeout: 120_000,
  });

test.each([
  'infra/docker/derive-secrets.mjs',
  'infra/observability/dashboards.mjs',
  'infra/dev/picture.mjs',
  'packages/cli/generate.mjs',
  'packages/cli/bundle.mjs',
  'packages/client/generate.mjs',
  'services/gateway/dist/write-openapi.js',
  'infra/dev/dist/start.js',
  'infra/dev/dist/dev-service.js',
  'infra/dev/dist/dev-call.js',
  'infra/dev/dist/migrate-new.js',
  'infra/dev/dist/compose.js',
  'infra/dev/dist/helm.js',
  'infra/bench/dist/bench.js',
  'packages/postgres/dist/migrate/cli.js',
  'services/keys/dist/bootstrap.js',
  'services/hosting/dist/command.js',
  'services/hosting/dist/deleted-sites/command.js',
  'services/compute/dist/command.js',
  'services/databases/dist/command.js',
  'packages/cli/dist/drydock.js',
])('%s helps when it is asked to, refuses what it does not know, and does nothing', (program) => {
  const helped = run(program, '--help');
  expect([helped.status, helped.stdout.toLowerCase()]).toEqual([0, expect.stringContaining('usage')]);
  const refused = run(program, '--no-such-thing');
  expect(refused.status).toBeGreaterThan(0);
  expect(refused.stderr).toContain('--no-such-thing');
  expect(readdirSync(folder)).toEqual([]);
});

test('run.mjs lists its commands', () => {
  const { status, stdout } = run('infra/dev/run.mjs', '--help');
  expect([status, stdout]).toEqual([0, expect.stringContaining('migrate:new')]);
});

// These programs read the repository in their working folder, so they start in its root.
test.each(['infra/dev/dist/run-tests.js', 'infra/dev/dist/mutants.js', 'packages/testing/dist/conventions/house.js'])(
  '%s helps when it is asked to, and refuses what it does not know',
  (program) => {
    const helped = run(program, '--help', inRepo('.'));
    expect([helped.status, helped.stdout.toLowerCase()]).toEqual([0, expect.stringContaining('usage')]);
    const refused = run(program, '--no-such-thing', inRepo('.'));
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringContaining('--no-such-thing')]);
  },
);
