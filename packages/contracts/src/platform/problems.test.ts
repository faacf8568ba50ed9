import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describeProblems, problemCodes } from './problems';

const page = describeProblems();

it('docs/errors.md is what is committed', () => {
  expect(readFileSync(path.resolve(__dirname, '../../../../docs/errors.md'), 'utf8')).toBe(page);
});

it('every code has one row of five cells', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  expect(rows.map((row) => row.split(' | ').length)).toEqual(problemCodes.map(() => 5));
});
