const fs = require('node:fs');

const tiers = ['gate', 'long', 'chaos'];

/**
 * Reads the docblock at the top of a suite. `tier` is the first command that runs the suite: `gate` (`npm test`, the
 * default), `long` (`npm run test:all`) or `chaos` (`npm run chaos`). `processes` is true for a suite with real
 * processes, which is run a second time when it fails. `root` is set for a suite that proves more when root runs it:
 * `gate` if `.ci/run` runs it as root, `long` if only `npm run test:all -- --as-root` does.
 */
function readPragmas(file) {
  const [docblock = ''] = /^\s*\/\*\*[\s\S]*?\*\//.exec(fs.readFileSync(file, 'utf8')) ?? [];
  const tier = /@tier\s+(\w+)/.exec(docblock)?.[1] ?? 'gate';
  if (!tiers.includes(tier)) throw new Error(`${file}: there is no tier ${tier}; there are ${tiers.join(', ')}`);
  const root = /@root(?: (?<when>long)\b)?/.exec(docblock);
  return { tier, processes: /@processes\b/.test(docblock), root: root && (root.groups.when ?? 'gate') };
}

module.exports = { readPragmas };
