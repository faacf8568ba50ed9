import { sourceFiles } from './source-files';

/** A workflow's head has its kind; request and worker share it. */
const kinds = sourceFiles
  .filter((file) => file.path.startsWith('services/') && file.path.endsWith('.head.ts'))
  .flatMap((file) => [...file.text.matchAll(/\bkind: '([a-z_]+)'/g)].map((match) => match[1] ?? ''));
const crashTests = sourceFiles.filter(
  (file) => file.path.startsWith('services/') && file.path.endsWith('.test.ts') && file.text.includes('crashEveryStep'),
);

describe('every workflow', () => {
  it('is crash-tested at every step', () => {
    expect(kinds.length).toBeGreaterThan(0);
    expect([...new Set(kinds)].filter((kind) => !crashTests.some((file) => file.text.includes(`'${kind}'`)))).toEqual([]);
  });

  it('has a head of its own', () => {
    const works = sourceFiles.filter((file) => file.path.startsWith('services/') && file.path.endsWith('.workflow.ts'));
    expect(works.length).toBe(new Set(kinds).size);
  });
});
