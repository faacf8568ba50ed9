/**
 * @processes
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { inRepo } from './dev-config';
import { type TypeWatch, watchTypes } from './watch-types';

let folder: string;
let said: string[];
let watch: TypeWatch;
const write = (text: string): void => fs.writeFileSync(path.join(folder, 'src/port.ts'), text);
/**
 * Writes a file with a modification time in the future. If the file were older than the end of the last compilation,
 * the next compilation would compile everything.
 */
const writeNewer = (text: string, name: string): void => {
  const draft = path.join(folder, 'draft');
  const later = Date.now() / 1_000 + 3_600;
  fs.writeFileSync(draft, text);
  fs.utimesSync(draft, later, later);
  fs.renameSync(draft, path.join(folder, `src/${name}.ts`));
};
const compiled = (): string => {
  const file = path.join(folder, 'dist/port.js');
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
};

beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-types-'));
  const compilerOptions = { rootDir: 'src', outDir: 'dist', types: [], tsBuildInfoFile: 'dist/.tsbuildinfo' };
  const project = { extends: inRepo('tsconfig.base.json'), compilerOptions, include: ['src'] };
  fs.writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project));
  fs.mkdirSync(path.join(folder, 'src'));
  write('export const port: number = 1;\n');
  said = [];
  watch = await watchTypes({
    name: 'keys',
    project: folder,
    sources: [path.join(folder, 'src')],
    say: (line) => said.push(line),
  });
  await until(() => compiled().includes('port = 1'), { what: 'the first code' });
});
afterEach(async () => {
  await watch.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

test('code with a type error is told and never compiled; the last good code stays until it is mended', async () => {
  write("export const port: number = 'two';\n");
  await until(() => said.some((line) => line.includes('keys has type errors')), { what: 'the error' });
  expect(said.join('\n')).toContain("Type 'string' is not assignable to type 'number'");
  expect(compiled()).toContain('port = 1');
  write('export const port: number = 3;\n');
  await until(() => compiled().includes('port = 3'), { what: 'the mended code' });
  await until(() => said.at(-1) === 'keys has no type errors any more', { what: 'the good news' });
});

test.each([100, 300, 500, 700])(
  'a file that is saved again %d ms later, while the compiler is at work, is compiled again',
  async (ms) => {
    write('export const port: number = 4;\n');
    await sleep(ms);
    write('export const port: number = 5;\n');
    await until(() => compiled().includes('port = 5'), { what: 'the code that was saved last' });
    expect(said).toEqual([]);
  },
);

test('a file that is removed is missed by its importer alone: nothing else is compiled anew', async () => {
  const output = (name: string): string => path.join(folder, `dist/${name}.js`);
  writeNewer('export const host = 1;\n', 'host');
  await until(() => fs.existsSync(output('host')), { what: 'the second file' });
  const before = fs.statSync(output('port')).mtimeMs;
  fs.rmSync(path.join(folder, 'src/host.ts'));
  writeNewer("import { host } from './host';\nexport const url = host;\n", 'url');
  await until(() => said.some((line) => line.includes("Cannot find module './host'")), {
    what: 'the complaint of the importer',
  });
  writeNewer('export const url = 2;\n', 'url');
  await until(() => fs.existsSync(output('url')), { what: 'the mended importer' });
  expect(fs.statSync(output('port')).mtimeMs).toBe(before);
});

test('a file that is saved by rename, as many editors do, is compiled every time', async () => {
  const saveByRename = (text: string): void => {
    const file = path.join(folder, 'src/port.ts');
    fs.writeFileSync(`${file}.swp`, text);
    fs.renameSync(`${file}.swp`, file);
  };
  for (const port of [11, 12, 13, 14]) {
    saveByRename(`export const port: number = ${port};\n`);
    await until(() => compiled().includes(`port = ${port}`), { what: `save ${port}` });
  }
  expect(said).toEqual([]);
});
