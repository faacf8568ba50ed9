import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { until } from '@drydock/testing/wait';
import { inRepo } from './dev-config';
import { watchTypes } from './watch-types';

test('code with a type error is told and never compiled; the last good code stays until it is mended', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-types-'));
  const write = (text: string): void => fs.writeFileSync(path.join(folder, 'port.ts'), text);
  const compiled = (): string => {
    const file = path.join(folder, 'dist/port.js');
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  };
  const compilerOptions = { rootDir: '.', outDir: 'dist', types: [], tsBuildInfoFile: 'dist/.tsbuildinfo' };
  const project = { extends: inRepo('tsconfig.base.json'), compilerOptions, include: ['*.ts'] };
  fs.writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project));
  write('export const port: number = 1;\n');
  const said: string[] = [];
  const watch = watchTypes('keys', folder, [folder], (line) => said.push(line));
  try {
    await until(() => compiled().includes('port = 1'), { what: 'the first code' });
    write("export const port: number = 'two';\n");
    await until(() => said.some((line) => line.includes('keys has type errors')), { what: 'the error' });
    expect(said.join('\n')).toContain("Type 'string' is not assignable to type 'number'");
    expect(compiled()).toContain('port = 1');
    write('export const port: number = 3;\n');
    await until(() => compiled().includes('port = 3'), { what: 'the mended code' });
    await until(() => said.at(-1) === 'keys has no type errors any more', { what: 'the good news' });
  } finally {
    await watch.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
