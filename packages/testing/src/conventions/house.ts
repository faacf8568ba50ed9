// `npm run house`: prints each measured number of the tree beside its limit, above which `npm run check` fails.
import { readCommandLine } from '@drydock/process';
import { readNumbers, readTree, writeNumbers } from './house-check';
import { measureHouse } from './measure-house';

const usage =
  'npm run house [-- --write]   prints the numbers of the tree; with --write lowers those that are committed to what is reached';
const { values } = readCommandLine(usage, { options: { write: { type: 'boolean', default: false } } });

const committed = readNumbers();
const rows = measureHouse(readTree());
process.stdout.write('| | Now | Allowed | Goal |\n|---|---|---|---|\n');
for (const { name, title, shown, goal } of rows) {
  process.stdout.write(`| ${title} | ${shown} | ${committed[name] ?? 'not yet known'} | ${goal} |\n`);
}
process.stdout.write(
  'Not counted: the files that a restore, an upgrade, a mint and `npm start` run, which takes a coverage run.\n',
);
if (values.write) {
  const lowered = rows.map(({ name, value }) => [name, Math.min(value, committed[name] ?? value)] as const);
  writeNumbers(Object.fromEntries(lowered));
}
