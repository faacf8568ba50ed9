import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '@drydock/contracts/endpoints';
import { surfaceOf } from '@drydock/contracts/platform/breaking-changes';
import { buildOpenApi } from '@drydock/contracts/platform/openapi';
import { readCommandLine } from '@drydock/process';

const { values } = readCommandLine('npm run openapi [-- --release]', { options: { release: { type: 'boolean' } } });
/**
 * `npm run openapi`: writes the committed document anew, formatted as everything that is committed. With `--release`,
 * also what a later version must keep.
 */
const document = buildOpenApi(endpoints);
const write = (name: string, content: object): void => {
  const file = path.resolve(__dirname, '../../../docs', name);
  writeFileSync(file, JSON.stringify(content));
  execFileSync('biome', ['format', '--write', file], { stdio: 'inherit' });
};
write('openapi.json', document);
if (values.release) write('released-api.json', surfaceOf(document));
