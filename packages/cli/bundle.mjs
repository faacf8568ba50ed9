// Writes dist/drydock.js: the command `drydock` and all its libraries in one file. The file needs only Node 20.19.
import fs from 'node:fs';
import { build } from 'esbuild';
// @boundaries-ignore This script runs before anything is built.
import { expectNoArguments } from '../../infra/dev/no-arguments.mjs';

expectNoArguments('usage: node bundle.mjs\n  Writes dist/drydock.js, in packages/cli.');

const outfile = 'dist/drydock.js';
await build({
  entryPoints: ['src/drydock.ts'],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  conditions: ['drydock-src'],
  // A smaller file starts faster. Names are not shortened, so that a stack trace stays readable.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  banner: { js: '#!/usr/bin/env node' },
});
fs.chmodSync(outfile, 0o755);
