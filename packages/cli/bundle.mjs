// Writes dist/drydock.js: the command with everything that it needs in one file, which needs only Node 20 to run.
import fs from 'node:fs';
import { build } from 'esbuild';
// @boundaries-ignore It runs before anything is built.
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
  // A file of half the size is read in half the time. Names stay, so that a stack trace can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  banner: { js: '#!/usr/bin/env node' },
});
fs.chmodSync(outfile, 0o755);
