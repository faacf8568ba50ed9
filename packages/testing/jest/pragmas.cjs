const fs = require('node:fs');

const tiers = ['gate', 'long', 'chaos'];

/**
 * Reads the docblock at the top of a suite. `tier`: `gate` (the default), `long` or `chaos`, the first command that
 * runs it: `npm test`, `npm run test:all`, `npm run chaos`. `processes`: it runs real processes, and gets one second
 * chance. `root`: it proves more as root; `.ci/run` runs it so too if this is `gate`, and `npm run test:all --
 * --as-root` if it is `long`.
 */
function readPragmas(file) {
  const [docblock = ''] = /^\s*\/\*\*[\s\S]*?\*\//.exec(fs.readFileSync(file, 'utf8')) ?? [];
  const tier = /@tier\s+(\w+)/.exec(docblock)?.[1] ?? 'gate';
  if (!tiers.includes(tier)) throw new Error(`${file}: there is no tier ${tier}; there are ${tiers.join(', ')}`);
  const root = /@root(?: (?<when>long)\b)?/.exec(docblock);
  return { tier, processes: /@processes\b/.test(docblock), root: root && (root.groups.when ?? 'gate') };
}

module.exports = { readPragmas };
