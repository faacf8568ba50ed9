import fs from 'node:fs';
import path from 'node:path';
import { isTest, listFiles, readText, root, sourceFiles } from './source-files';

/** Returns the targets of Markdown links and pictures that are files of the repository. */
const relativeTargets = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((target) => !/^(https?:|mailto:|#)/.test(target));

/** Returns the names in backticks in the column `File` of the tables of a page. */
function filesInTables(page: string): string[] {
  let column = -1;
  return readText(page)
    .split('\n')
    .flatMap((line) => {
      const cells = line.startsWith('|') ? line.split('|').map((cell) => cell.trim()) : [];
      if (cells.includes('File')) column = cells.indexOf('File');
      if (cells.length === 0) column = -1;
      return [...(cells[column] ?? '').matchAll(/`([\w./-]+)`/g)].map((match) => match[1] ?? '');
    });
}

describe('documentation', () => {
  it('names files of its own package in the column "File" of a table', () => {
    const pages = listFiles('services/**/README.md', 'packages/**/README.md');
    const found = pages.flatMap((page) => filesInTables(page).map((name) => ({ page, name })));
    const isThere = ({ page, name }: { page: string; name: string }): boolean =>
      listFiles(`${path.dirname(page)}/**`).some((file) =>
        name.endsWith('/') ? file.includes(`/${name}`) : [name, `${name}.ts`].some((end) => file.endsWith(`/${end}`)),
      );
    expect(found.length).toBeGreaterThan(20);
    expect(found.filter((each) => !isThere(each))).toEqual([]);
  });

  it('has no dead relative link', () => {
    const pages = listFiles('*.md');
    const dead = pages.flatMap((page) =>
      relativeTargets(readText(page))
        .map((target) => target.split('#')[0] ?? '')
        .filter((target) => !fs.existsSync(path.resolve(root, path.dirname(page), target)))
        .map((target) => `${page} -> ${target}`),
    );
    expect(pages.length).toBeGreaterThan(0);
    expect(dead).toEqual([]);
  });

  it('has a runbook for each alarm of a log line or of Prometheus, and no other', () => {
    const alarms = sourceFiles
      .filter((file) => !isTest(file))
      .flatMap(({ text }) => [...text.matchAll(/\balarm: (?!string)('?\w+'?)/g)].map((match) => match[1] ?? ''));
    const rules = [...readText('infra/observability/rules.yml').matchAll(/runbook: docs\/runbooks\/(\w+)\.md/g)].map(
      ([, page]) => `'${page}'`,
    );
    const pages = listFiles('docs/runbooks/*.md').map((page) => path.basename(page, '.md'));
    expect([...new Set([...alarms, ...rules])].sort()).toEqual(pages.map((page) => `'${page}'`).sort());
    const overview = relativeTargets(readText('docs/operating.md')).filter((target) => target.startsWith('runbooks/'));
    expect([...new Set(overview)].sort()).toEqual(pages.map((page) => `runbooks/${page}.md`).sort());
  });
});

test('each built file that a program names by its path has a source', () => {
  const named = listFiles('*.ts', '*.mjs', 'package.json', 'docker-compose.yml', 'infra/docker/*').flatMap((file) =>
    [...readText(file).matchAll(/\b((?:packages|services|infra)\/[\w-]+)\/dist\/([\w./-]+)\.js\b/g)].map(
      ([, member = '', name = '']) => `${member}/src/${name}.ts`,
    ),
  );
  expect(named.length).toBeGreaterThan(40);
  expect([...new Set(named)].filter((source) => !fs.existsSync(path.join(root, source)))).toEqual([]);
});
