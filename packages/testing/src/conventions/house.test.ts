import { complaints, readNumbers, readTree } from './house-check';
import { measureHouse, numbersOf, type Tree } from './measure-house';

const tidy: Tree = new Map([
  ['packages/x/package.json', '{"exports":{".":"./src/x.ts"}}'],
  ['packages/x/src/x.ts', `// The unit is a byte.\n${'export {};\n'.repeat(30)}`],
]);
const tidyNumbers = { ...numbersOf(measureHouse(tidy)), sourceFiles: 650, shortFiles: 650 };
/** Adds `files` to the tidy tree, and returns the complaints of the check about the result. */
const saidOf = (files: Record<string, string>): string[] =>
  complaints(new Map([...tidy, ...Object.entries(files)]), tidyNumbers, () => tidy);

test('no number of the house is worse than the committed one: npm run house prints them', () => {
  expect(complaints(readTree(), readNumbers())).toEqual([]);
});

test('the committed numbers are those of the table, and the table counts something', () => {
  const rows = measureHouse(readTree());
  expect(Object.keys(readNumbers())).toEqual(rows.map(({ name }) => name));
  expect(rows.find(({ name }) => name === 'sourceFiles')?.value).toBeGreaterThan(100);
});

test('a tree that keeps its numbers is not complained of', () => {
  expect(saidOf({})).toEqual([]);
});

test.each([
  [
    'a comment that opens backwards',
    { 'services/a/src/a.ts': 'x();\n\n/** Whoever asks. */\n' },
    'services/a/src/a.ts:3: Whoever asks.',
  ],
  [
    'one in the second line of its block',
    { 'infra/a/a.ts': '/**\n * Of the gateway.\n */\n' },
    'infra/a/a.ts:1: Of the gateway.',
  ],
  [
    'one behind a statement, in a test',
    { 'infra/a/a.test.ts': `x(); ${'//'} What it is\n` },
    'infra/a/a.test.ts:1: What it is',
  ],
  ['a line that is too long', { 'packages/x/src/y.ts': `${'y'.repeat(121)}\n` }, 'packages/x/src/y.ts:1'],
  ['a file that is too long', { 'packages/x/src/y.ts': 'y\n'.repeat(401) }, 'packages/x/src/y.ts'],
  [
    'a package without a front door',
    { 'packages/y/package.json': '{"exports":{"./y":"./y.ts"}}' },
    'packages/y/package.json',
  ],
  [
    'folders that import each other',
    Object.fromEntries(
      Array.from({ length: 11 }, (_, i) => [
        [`packages/x/src/a${i}/a.ts`, "import '1';\nimport { b } from './b/b';\n"],
        [`packages/x/src/a${i}/b/b.ts`, "import { a } from '../a';\n"],
      ]).flat(),
    ),
    'packages/x/src/a0 <-> packages/x/src/a0/b (packages/x/src/a0/a.ts, packages/x/src/a0/b/b.ts)',
  ],
  [
    'a crowded folder',
    Object.fromEntries(Array.from({ length: 26 }, (_, i) => [`packages/x/src/y/y${i}.ts`, 'y\n'.repeat(30)])),
    'packages/x/src/y',
  ],
])('the check fails for %s, and says where it is', (_, files: Record<string, string>, where) => {
  const said = saidOf(files);
  expect(said).toHaveLength(1);
  expect(said[0]?.split('\n').slice(1)).toContain(`  ${where}`);
});

test('a question, "whether" and a word within a sentence do not open backwards', () => {
  expect(
    saidOf({ 'infra/a/a.ts': '// Whether it runs.\n\n// What is it?\n\n// The one of\n// Of these, none.\n' }),
  ).toEqual([]);
});

test('only what is new is named, by its text: a comment that moved is not', () => {
  const before = new Map([...tidy, ['infra/a/a.ts', '/** What it was. */\n']]);
  const now = new Map([...tidy, ['infra/a/a.ts', '\n\n/** What it was. */\n/** What it is. */\n']]);
  const said = complaints(now, { ...tidyNumbers, backwardComments: 1 }, () => before);
  expect(said.map((line) => line.split('\n').slice(1))).toEqual([['  infra/a/a.ts:4: What it is.']]);
});

test('a number that is worse than the committed one but no worse than its goal is let through', () => {
  expect(saidOf({ 'packages/x/src/y.ts': 'y\n'.repeat(399) })).toEqual([]);
});
