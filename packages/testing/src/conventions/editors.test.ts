import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { listFiles, readText, root } from './source-files';

interface Launch {
  name: string;
  request: 'launch' | 'attach';
  program?: string;
  args?: string[];
  port?: number;
}

const readJson = (file: string): unknown => JSON.parse(readText(file));
const launches = (readJson('.vscode/launch.json') as { configurations: Launch[] }).configurations;

describe('editors', () => {
  it('find the project of every test file, with the names that jest defines', () => {
    // An editor finds the project of a file among the projects that the root's tsconfig.json references.
    const { references } = readJson('tsconfig.json') as { references: { path: string }[] };
    expect(references).toContainEqual({ path: './tsconfig.test.json' });
    const project = readJson('tsconfig.test.json') as { compilerOptions: { types: string[] } };
    expect(project.compilerOptions.types).toContain('jest');
    const tsc = path.join(root, 'node_modules/.bin/tsc');
    const listed = execFileSync(tsc, ['-p', 'tsconfig.test.json', '--listFilesOnly'], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 64 << 20,
    });
    const known = new Set(listed.split('\n'));
    const tests = listFiles('*.test.ts');
    expect(tests.length).toBeGreaterThan(0);
    expect(tests.filter((file) => !known.has(path.join(root, file)))).toEqual([]);
  });

  it.each(launches.filter(({ request }) => request === 'launch'))(
    'launch "$name" stops at a debugger',
    async ({ program, args }) => {
      const filled = [program ?? '', ...(args ?? [])].map((text) =>
        text
          .replace(/\$\{workspaceFolder\}/, root)
          .replace(/\$\{relativeFile\}/, 'packages/service/src/redis/redis-address.test.ts'),
      );
      const child = spawn(process.execPath, ['--inspect-brk=127.0.0.1:0', ...filled], {
        cwd: root,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      try {
        const said = await new Promise<string>((resolve) => {
          child.stderr.setEncoding('utf8').once('data', resolve);
          child.once('exit', (code) => resolve(`ended with ${code}`));
        });
        expect(said).toMatch(/^Debugger listening on ws:\/\/127\.0\.0\.1:/);
        expect(fs.existsSync(filled[0] ?? '')).toBe(true);
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  it('attach to the port that Node opens on SIGUSR1', async () => {
    expect(launches.filter(({ request }) => request === 'attach').map(({ port }) => port)).toEqual([9229]);
    const idle = "process.on('message', () => 0); process.send('ready')";
    const child = spawn(process.execPath, ['--inspect-port=0', '-e', idle], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    try {
      await new Promise((resolve) => child.once('message', resolve));
      const said = new Promise<string>((resolve) => child.stderr?.setEncoding('utf8').once('data', resolve));
      child.kill('SIGUSR1');
      expect(await said).toMatch(/^Debugger listening on ws:\/\/127\.0\.0\.1:/);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
