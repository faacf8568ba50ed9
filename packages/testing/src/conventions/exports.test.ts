import path from 'node:path';
import { listFiles, readText, sourceFiles } from './source-files';

/** For each package: the modules that it exports, and those of its modules that other packages import. */
const surfaces = listFiles('packages/*/package.json').map((file) => {
  const { name, exports } = JSON.parse(readText(file)) as { name: string; exports: Record<string, unknown> };
  const home = `${path.dirname(file)}/`;
  const imported = sourceFiles
    .filter((source) => !source.path.startsWith(home))
    .flatMap((source) => source.imports)
    .filter((specifier) => specifier === name || specifier.startsWith(`${name}/`))
    .map((specifier) => `.${specifier.slice(name.length)}`);
  return { name, exported: Object.keys(exports).sort(), imported: [...new Set(imported)].sort() };
});

/** Exported modules that no source file imports: a README names the first, and Node's `--require` loads the second. */
const namedToNode = ['@drydock/client .', '@drydock/service ./preload'];

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

/**
 * For each `index.ts` of a package or of one of its folders: the exported names, and the names that other packages
 * import from the file.
 */
const frontDoors = listFiles('packages/*/src/index.ts', 'packages/*/src/*/index.ts').map((file) => {
  const [, home = '', room = ''] = /^(packages\/[^/]+\/)src(\/[^/]+)?\/index\.ts$/.exec(file) ?? [];
  const door = `${(JSON.parse(readText(`${home}package.json`)) as { name: string }).name}${room}`;
  const imports = new RegExp(`\\{([^}]*)\\} from '${door}'`, 'g');
  const wanted = sourceFiles
    .filter((source) => !source.path.startsWith(home))
    .flatMap((source) => [...source.text.matchAll(imports)].flatMap((match) => namesIn(match[1] ?? '')));
  const text = readText(file);
  const given = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '\.\//gm)];
  return { door, given: given.flatMap((match) => namesIn(match[1] ?? '')), wanted, text };
});

/** Returns the names in the braces of an export or import: `A` and `b` for `type A, b as c`. */
function namesIn(list: string): string[] {
  const items = list.split(',').map((item) => item.trim());
  return items.filter((item) => item !== '').map((item) => item.replace(/^type /, '').split(' ')[0] ?? '');
}

it('a front door lists the names that others import, and holds nothing else', () => {
  expect(frontDoors.length).toBeGreaterThan(10);
  for (const { door, given, wanted, text } of frontDoors) {
    const unused = given.filter((name) => !wanted.includes(name));
    const other = text.replaceAll(/^export (type )?\{[^}]*\} from '\.\/[^']+';$/gm, '').trim();
    expect({ door, unused, other }).toEqual({ door, unused: [], other: '' });
  }
});
