import { spawnSync } from 'node:child_process';
import path from 'node:path';

const dist = path.resolve(__dirname, '../../dist');

const run = (code: string): string =>
  spawnSync(process.execPath, ['--require', path.join(dist, 'telemetry/preload.js'), '-e', code], {
    encoding: 'utf8',
    env: {},
  }).stderr;

test('the stack of an error names the TypeScript file and the line', () => {
  const config = JSON.stringify(path.join(dist, 'process/config.js'));
  const stack = run(
    `try { require(${config}).readConfig(undefined, {}); } catch (error) { console.error(error.stack); }`,
  );

  expect(stack).toMatch(/packages\/service\/src\/process\/config\.ts:\d+:\d+/);
  expect(stack).not.toContain('dist/process/config.js');
});

test('an error of a program that has no source map keeps its stack', () => {
  expect(run('throw new RangeError("too far")')).toMatch(/RangeError: too far\n {4}at \[eval\]:1:7/);
});
