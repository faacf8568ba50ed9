/**
 * Checks docs/openapi.json with linters for OpenAPI.
 *
 * @tier long
 * @processes
 */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { inRepo } from './dev-config';

const run = promisify(execFile);
const tools = process.env['DRYDOCK_OPENAPI_TOOLS'] ?? '/var/cache/drydock-openapi-tools';
/**
 * The linters are no dependencies of this repository. The tests are skipped unless `.ci/fetch-openapi-tools` has
 * fetched them.
 */
const itWith = fs.existsSync(path.join(tools, 'complete')) ? test : test.skip;
const bin = (name: string): string => path.join(tools, 'node_modules/.bin', name);

const redocly = (file: string) =>
  run(bin('redocly'), ['lint', '--config', inRepo('redocly.yaml'), '--format', 'json', file]);
const spectral = (file: string) =>
  run(bin('spectral'), [
    'lint',
    '-r',
    inRepo('.spectral.yaml'),
    '-f',
    'json',
    '--quiet',
    '--fail-severity',
    'hint',
    file,
  ]);

itWith(
  'redocly and spectral find nothing in the contract, not even a hint',
  async () => {
    const file = inRepo('docs/openapi.json');
    expect(JSON.parse((await redocly(file)).stdout)).toMatchObject({ totals: { errors: 0, warnings: 0, ignored: 0 } });
    expect(JSON.parse((await spectral(file)).stdout)).toEqual([]);
  },
  300_000,
);

itWith('they do find what is wrong', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-openapi-'));
  const file = path.join(folder, 'openapi.json');
  const paths = { '/v1/things': { get: { responses: { 200: { description: 'Things' } } } } };
  fs.writeFileSync(file, JSON.stringify({ openapi: '3.1.1', info: { title: 'Things', version: '1' }, paths }));
  await expect(redocly(file)).rejects.toMatchObject({ stdout: expect.stringContaining('"operation-operationId"') });
  await expect(spectral(file)).rejects.toMatchObject({ stdout: expect.stringContaining('"operation-operationId"') });
  fs.rmSync(folder, { recursive: true });
});
