import { sourceFiles } from './source-files';

const inServices = (ending: string) => sourceFiles.filter((file) => file.path.startsWith('services/') && file.path.endsWith(ending));
const kinds = inServices('.workflow.ts').flatMap((file) =>
  [...file.text.matchAll(/\bdefineWorkflow\(\{\s*kind: '([a-z_]+)'/g)].map((match) => match[1] ?? ''),
);
const crashTests = inServices('.test.ts').filter((file) => file.text.includes('crashEveryStep'));

describe('every workflow', () => {
  it('is crash-tested at every step', () => {
    expect(kinds.length).toBeGreaterThan(0);
    expect([...new Set(kinds)].filter((kind) => !crashTests.some((file) => file.text.includes(`'${kind}'`)))).toEqual([]);
  });

  it('has a file of its own', () => {
    expect(inServices('.workflow.ts').length).toBe(new Set(kinds).size);
  });
});
