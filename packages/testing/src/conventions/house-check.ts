import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { type HouseNumbers, measureHouse, newFindings, type Tree, worseRows } from './measure-house';
import { listFiles, readText, root } from './source-files';

/**
 * The file with the limit for each number. `npm run house -- --write` lowers the limits to what the tree has reached. A
 * limit is raised by hand, with the reason in the commit.
 */
const numbersFile = 'packages/testing/house.json';
const patterns = ['packages/*.ts', 'services/*.ts', 'infra/*.ts', 'packages/*/package.json'];

export const readTree = (): Tree => new Map(listFiles(...patterns).map((file) => [file, readText(file)]));

export const readNumbers = (): HouseNumbers => JSON.parse(readText(numbersFile)) as HouseNumbers;

export const writeNumbers = (numbers: HouseNumbers): void =>
  fs.writeFileSync(path.join(root, numbersFile), `${JSON.stringify(numbers, null, 2)}\n`);

/**
 * Returns a message for each number above its limit. The message lists the findings that are new since the commit that
 * last changed the limits, or all findings if none is new.
 */
export function complaints(tree: Tree, committed: HouseNumbers, readEarlier: () => Tree = readCommittedTree): string[] {
  const worse = worseRows(measureHouse(tree), committed);
  if (worse.length === 0) return [];
  const earlier = measureHouse(readEarlier());
  return worse.map((row) => {
    const places = newFindings(
      row,
      earlier.find(({ name }) => name === row.name),
    ).map(({ where }) => `  ${where}`);
    return [`${row.title}: ${row.value}, and ${numbersFile} allows ${committed[row.name] ?? 'none'}`, ...places].join(
      '\n',
    );
  });
}

/** Returns the tree of the commit that last changed the limits, or an empty tree if no commit did. */
function readCommittedTree(): Tree {
  const git = (args: string[], input?: string): Buffer =>
    execFileSync('git', args, { cwd: root, input, maxBuffer: 1 << 30 });
  const commit = git(['log', '-1', '--format=%H', '--', numbersFile]).toString().trim();
  if (commit === '') return new Map();
  const files = git(['ls-tree', '-r', '--name-only', commit, '--', 'packages', 'services', 'infra'])
    .toString()
    .split('\n')
    .filter((file) => /\.ts$|^packages\/[^/]+\/package\.json$/.test(file));
  const output = git(['cat-file', '--batch'], `${files.map((file) => `${commit}:${file}`).join('\n')}\n`);
  const tree = new Map<string, string>();
  let offset = 0;
  for (const file of files) {
    const headEnd = output.indexOf('\n', offset);
    const size = Number(output.toString('utf8', offset, headEnd).split(' ')[2]);
    tree.set(file, output.toString('utf8', headEnd + 1, headEnd + 1 + size));
    offset = headEnd + 1 + size + 1;
  }
  return tree;
}
