// Writes src/generated from docs/openapi.json: the types of all operations, and each operation's method and path.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
// @boundaries-ignore This script runs before anything is built.
import { expectNoArguments } from '../../infra/dev/no-arguments.mjs';

expectNoArguments('usage: node packages/client/generate.mjs\n  Writes src/generated from docs/openapi.json.');

const here = path.dirname(fileURLToPath(import.meta.url));
const document = JSON.parse(fs.readFileSync(path.join(here, '../../docs/openapi.json'), 'utf8'));
const target = path.join(here, 'src/generated');
fs.mkdirSync(target, { recursive: true });

fs.writeFileSync(path.join(target, 'openapi.ts'), astToString(await openapiTS(document)));

const routes = Object.entries(document.paths).flatMap(([route, operations]) =>
  Object.entries(operations).map(([method, { operationId, responses, parameters }]) => [
    operationId,
    {
      method: method.toUpperCase(),
      path: route,
      takesKey: parameters.some(({ name }) => name === 'Idempotency-Key'),
      isStream: responses['200']?.content?.['text/event-stream'] !== undefined,
    },
  ]),
);
fs.writeFileSync(
  path.join(target, 'routes.ts'),
  `export const routes = ${JSON.stringify(Object.fromEntries(routes), null, 2)} as const;\n`,
);
