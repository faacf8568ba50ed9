import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { isTestPath } from './measure-house';

export const root = path.resolve(__dirname, '../../../..');

export interface SourceFile {
  /** The path from the repository's root, with `/`. */
  path: string;
  text: string;
  lines: number;
  /** The imported modules, as written: `./x`, `@drydock/contracts/problem`, `node:fs`. */
  imports: string[];
}

/** Lists the files that match a pattern and that git tracks or would add. */
export const listFiles = (...patterns: string[]): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '' && fs.existsSync(path.join(root, file)));

export const readText = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8');

const importPattern = /\b(?:from|import|require(?:\.resolve)?\()\s*\(?\s*'([^'\n]+)'/g;

export function readSource(file: string): SourceFile {
  const text = readText(file);
  return {
    path: file,
    text,
    lines: text.split('\n').length - 1,
    imports: [...text.matchAll(importPattern)].map((match) => match[1] ?? ''),
  };
}

export const sourceFiles: SourceFile[] = listFiles('packages/*.ts', 'services/*.ts', 'infra/*.ts').map(readSource);
export const isTest = ({ path: file }: SourceFile): boolean => isTestPath(file);
