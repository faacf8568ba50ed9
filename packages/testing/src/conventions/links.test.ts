import fs from 'node:fs';
import path from 'node:path';
import { listFiles, readText, root } from './source-files';

/** Targets of Markdown links and pictures that are files of ours. */
const relativeTargets = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? '').filter((target) => !/^(https?:|mailto:|#)/.test(target));

describe('documentation', () => {
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
});
