import path from 'node:path';
import { listFiles, readText, sourceFiles } from './source-files';

/** The modules that a package lets others import, and those that others do import. */
const surfaces = listFiles('packages/*/package.json').map((file) => {
  const { name, exports } = JSON.parse(readText(file)) as { name: string; exports: Record<string, unknown> };
  const home = `${path.dirname(file)}/`;
  const imported = sourceFiles
    .filter((source) => !source.path.startsWith(home))
    .flatMap((source) => source.imports)
    .filter((specifier) => specifier.startsWith(`${name}/`))
    .map((specifier) => `.${specifier.slice(name.length)}`);
  return { name, exported: Object.keys(exports).sort(), imported: [...new Set(imported)].sort() };
});

/**
 * Modules that are named to Node: by a preload, by the package itself where jest resolves nothing, by the examples of a
 * README.
 */
const namedToNode = [
  '@drydock/client .',
  '@drydock/service ./telemetry/telemetry',
  '@drydock/postgres ./server/postgres',
];

it.each(surfaces)(
  '$name exports the modules that others import, by name, and no other',
  ({ name, exported, imported }) => {
    const unused = exported.filter(
      (module) => !imported.includes(module) && !namedToNode.includes(`${name} ${module}`),
    );
    expect({ unused, missing: imported.filter((module) => !exported.includes(module)) }).toEqual({
      unused: [],
      missing: [],
    });
  },
);
