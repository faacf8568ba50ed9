import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '@drydock/contracts/endpoints';
import { surfaceOf } from '@drydock/contracts/platform/breaking-changes';
import { buildOpenApi } from '@drydock/contracts/platform/openapi';
import { describeProblems } from '@drydock/contracts/platform/problems';
import { readCommandLine } from '@drydock/process';

/**
 * This program rewrites the files in docs/ that are made from the contract: the OpenAPI document, in Biome's format,
 * and the list of errors. With `--release` it also writes the parts of the API that later versions must keep.
 */
const { values } = readCommandLine('npm run openapi [-- --release]', { options: { release: { type: 'boolean' } } });
const document = buildOpenApi(endpoints);
const fileOf = (name: string): string => path.resolve(__dirname, '../../../docs', name);
const write = (name: string, content: object): void => {
  const file = fileOf(name);
  writeFileSync(file, JSON.stringify(content));
  execFileSync('biome', ['format', '--write', file], { stdio: 'inherit' });
};
write('openapi.json', document);
if (values.release) write('released-api.json', surfaceOf(document));
writeFileSync(fileOf('errors.md'), describeProblems());
