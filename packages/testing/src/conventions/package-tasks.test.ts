import { posix } from 'node:path';
import { listFiles, readText } from './source-files';

interface Manifest {
  scripts: Record<string, string>;
}
const folders = listFiles('*/*/package.json').map(posix.dirname);

describe('turbo', () => {
  it('knows lint, typecheck and test', () => {
    const { tasks } = JSON.parse(readText('turbo.json')) as { tasks: Record<string, unknown> };
    expect(Object.keys(tasks)).toEqual(expect.arrayContaining(['lint', 'typecheck', 'test']));
    expect(folders.length).toBeGreaterThan(15);
  });

  it.each(folders)('finds these tasks in %s, as in every other package', (folder) => {
    const { scripts } = JSON.parse(readText(`${folder}/package.json`)) as Manifest;
    expect(scripts['lint']).toBe('biome ci . && oxlint --type-aware --deny-warnings -c ../../.oxlintrc.json .');
    expect(scripts['typecheck']).toMatch(/tsc -p tsconfig\.test\.json$/);
    expect(scripts['test']).toMatch(new RegExp(` ${folder}/$`));
    expect(JSON.parse(readText(`${folder}/tsconfig.test.json`))).toEqual({
      extends: '../../tsconfig.package-test.json',
    });
  });
});
