import { filesRegisteredIn, kindDefinedIn, kindsCrashedIn } from './crash-coverage';
import { type SourceFile, sourceFiles } from './source-files';

const inServices = (ending: string) =>
  sourceFiles.filter((file) => file.path.startsWith('services/') && file.path.endsWith(ending));
const definitions = inServices('.workflow.ts');
const kinds = new Map(definitions.map((file) => [file.path, kindDefinedIn(file)]));
const crashSuites = inServices('crash.test.ts').filter((file) => file.text.includes('crashEveryStep'));

describe('every workflow', () => {
  it('has a file and a kind of its own, and is registered at the worker of its service', () => {
    expect(definitions.length).toBeGreaterThan(20);
    expect(new Set(kinds.values()).size).toBe(definitions.length);
    const registered = inServices('/src/workflows.ts').flatMap(filesRegisteredIn);
    expect(registered.sort()).toEqual(definitions.map((file) => file.path).sort());
  });

  it('is crashed at every step by a suite that `npm run test:all` runs', () => {
    const crashed = new Set(crashSuites.flatMap((file) => kindsCrashedIn(file, (path) => kinds.get(path))));
    expect([...crashed].sort()).toEqual([...kinds.values()].sort());
  });
});

describe('a suite crashes', () => {
  const crashedBy = (lines: string): string[] => {
    const text = `import { crashEveryStepInWorld, definitionOf } from '@drydock/service/testing/crash-in-world';
      import { sendWorkflow } from './send.workflow';\n${lines}`;
    const file: SourceFile = { path: 'services/post/src/crash.test.ts', text, lines: 0, imports: [] };
    return kindsCrashedIn(file, (path) => (path === 'services/post/src/send.workflow.ts' ? 'send' : undefined));
  };
  it.each([
    ['the definition that it hands over', 'crashEveryStepInWorld(world, sendWorkflow, fixture)'],
    ['one that a constant holds', 'const definition = sendWorkflow; crashEveryStepInWorld(world, definition, fixture)'],
    ['the kind that it looks up', "crashEveryStepInWorld(world, definitionOf(workflows, 'send'), fixture)"],
    [
      'each kind that a function of its own is called with',
      "const crash = async (kind: string) => { const found = definitionOf(workflows, kind); await crashEveryStepInWorld(world, found, {}); }; it('x', () => crash('send'));",
    ],
  ])('%s', (_, lines) => expect(crashedBy(lines)).toEqual(['send']));

  it.each([
    ['a kind that it only names', "// crashEveryStepInWorld(world, sendWorkflow)\nit('send', () => start('send'));"],
    [
      'a definition that it only imports',
      "const crash = (kind: string) => crashEveryStepInWorld(world, definitionOf(workflows, kind), {}); crash('other')",
    ],
    ['a function of the same name', 'const crashEveryStep = () => 0; crashEveryStep(sendWorkflow)'],
  ])('not %s', (_, lines) => expect(crashedBy(lines)).not.toContain('send'));
});
