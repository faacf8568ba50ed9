import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '@drydock/contracts/platform/endpoints';
import { buildOpenApi } from '@drydock/contracts/platform/openapi';

/** `npm run openapi`: writes the committed document anew, formatted as everything that is committed. */
const file = path.resolve(__dirname, '../../../docs/openapi.json');
writeFileSync(file, JSON.stringify(buildOpenApi(endpoints)));
execFileSync('biome', ['format', '--write', file], { stdio: 'inherit' });
