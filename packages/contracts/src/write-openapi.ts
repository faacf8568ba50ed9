import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from './endpoints';
import { buildOpenApi } from './openapi';

/** `pnpm openapi`: writes the committed document anew. */
const file = path.resolve(__dirname, '../../../docs/openapi.json');
writeFileSync(file, `${JSON.stringify(buildOpenApi(endpoints), null, 2)}\n`);
