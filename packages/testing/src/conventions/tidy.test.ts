import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { importRules } from './import-rules';
import { isTest, listFiles, readText, root, sourceFiles } from './source-files';
import { textRules } from './text-rules';

/** Matches paths that exist only on a machine on which Drydock was built, and hosts of package registries. */
const machine = /\/(work|farm)\/|registry\.(npmjs|npmmirror)/;
const linesMax = { source: 400, test: 600 };

describe('the tree keeps the rules of the house', () => {
  it('reads every source file there is, so that a rule cannot pass by reading nothing', () => {
    const found = execFileSync(
      'find',
      [
        'packages',
        'services',
        'infra',
        '-name',
        '*.ts',
        '-not',
        '-path',
        '*/node_modules/*',
        '-not',
        '-path',
        '*/dist/*',
      ],
      {
        cwd: root,
        encoding: 'utf8',
      },
    );
    const expected = found
      .split('\n')
      .filter((file) => file !== '' && !file.includes('/generated/') && !file.includes('/.data'));
    expect(sourceFiles.map((file) => file.path).sort()).toEqual(expected.sort());
    expect(sourceFiles.filter((file) => file.imports.length > 0).length).toBeGreaterThan(sourceFiles.length / 2);
  });

  it.each(importRules)('$reason', ({ forbids }) => {
    const offenders = sourceFiles.flatMap((file) =>
      file.imports.filter((imported) => forbids(file, imported)).map((imported) => `${file.path} imports ${imported}`),
    );
    expect(offenders).toEqual([]);
  });

  it.each(textRules)('$reason', ({ pattern, allowedIn }) => {
    const offenders = sourceFiles
      .filter((file) => !allowedIn(file) && pattern.test(file.text))
      .map((file) => file.path);
    expect(offenders).toEqual([]);
  });

  it('keeps rooms small', () => {
    const limit = (file: (typeof sourceFiles)[number]) => (isTest(file) ? linesMax.test : linesMax.source);
    expect(
      sourceFiles.filter((file) => file.lines > limit(file)).map((file) => `${file.path}: ${file.lines} lines`),
    ).toEqual([]);
  });

  it('says its tier where the runner reads it: in a docblock at the top, in words that it knows', () => {
    const tests = sourceFiles.filter((file) => file.path.endsWith('.test.ts'));
    const words = (text: string): string[] => [...text.matchAll(/^ \* @(\S.*)$/gm)].map((match) => match[1] ?? '');
    const known = ['tier long', 'tier chaos', 'processes', 'root', 'root long'];
    const misread = tests.filter(({ text }) => {
      const docblock = /^\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? '';
      const said = words(docblock);
      return (
        said.some((word) => !known.includes(word)) ||
        words(text).filter((word) => /^(tier|processes|root)\b/.test(word)).length !== said.length
      );
    });
    expect(misread.map((file) => file.path)).toEqual([]);
    const tiers = tests.map(({ text }) => (/^\/\*\*[\s\S]*?@tier (\w+)[\s\S]*?\*\//.exec(text) ?? [])[1] ?? 'gate');
    expect(tiers.filter((tier) => tier === 'long').length).toBeGreaterThan(30);
    expect(tiers.filter((tier) => tier === 'gate').length).toBeGreaterThan(100);
  });

  it('names files for what they are: no index but a front door, no shared, common, utils or helpers', () => {
    // `index-block.ts` is allowed, because its name says which index it is about.
    const vague = /(^|\/)(index\.|(shared|common|utils?|helpers?|misc)(\.|\/|-))/;
    const frontDoor = /^packages\/[a-z]+\/src\/([a-z]+\/)?index\.ts$/;
    const names = sourceFiles.map((file) => file.path).filter((file) => vague.test(file) && !frontDoor.test(file));
    expect(names).toEqual([]);
  });

  it('knows no machine: no path of one and no registry host in a tracked file', () => {
    const named = listFiles('.', ':!pnpm-lock.yaml', ':!packages/testing/src/conventions').filter((file) =>
      machine.test(readText(file)),
    );
    expect(named).toEqual([]);
  });

  it('has an .env.example in every service, and a test that compares it with the config', () => {
    const services = listFiles('services/*/src/config.ts').map((file) => path.dirname(path.dirname(file)));
    const isCompared = (service: string): boolean => {
      const test = sourceFiles.find((file) => file.path === `${service}/src/config.test.ts`);
      return (
        listFiles(`${service}/.env.example`).length === 1 && /\.env\.example.*envExample\(/s.test(test?.text ?? '')
      );
    };
    expect(services.length).toBeGreaterThan(0);
    expect(services.filter((service) => !isCompared(service))).toEqual([]);
  });

  it('has a README in every package and service', () => {
    const homes = new Set(
      listFiles('packages/*/package.json', 'services/*/package.json').map((file) => path.dirname(file)),
    );
    const readmes = new Set(
      listFiles('packages/*/README.md', 'services/*/README.md').map((file) => path.dirname(file)),
    );
    expect([...homes].filter((home) => !readmes.has(home))).toEqual([]);
  });
});
