import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const root = path.resolve(__dirname, '../../..');
const config = require(path.join(root, 'jest.config.cjs')) as { reporters: string[] };

test('a run of tests by their name prints these, and counts the others', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-jest-'));
  fs.writeFileSync(
    path.join(folder, 'both.test.js'),
    "test('wanted one', () => undefined); test('other', () => undefined);",
  );
  const reporters = config.reporters.map((reporter) => reporter.replace('<rootDir>', root));
  fs.writeFileSync(path.join(folder, 'jest.config.json'), JSON.stringify({ rootDir: folder, reporters }));
  const args = [
    path.join(root, 'node_modules/jest/bin/jest.js'),
    '--config',
    path.join(folder, 'jest.config.json'),
    '-t',
    'wanted',
  ];
  const { stderr, status } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  fs.rmSync(folder, { recursive: true, force: true });
  expect(status).toBe(0);
  expect(stderr).toContain('wanted one');
  expect(stderr).toContain('1 skipped, 1 passed');
  expect(stderr).not.toContain('skipped other');
});
