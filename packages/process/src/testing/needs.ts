import { findProgram } from '../find-program';

/** Tools that tests use besides npm's packages, and `.ci/install` installs: any one of the programs will do. */
const tools = {
  redis: ['valkey-server', 'redis-server'],
  acl: ['getfacl'],
  attr: ['getfattr'],
} as const;
export type Tool = keyof typeof tools;

/**
 * The end of a test's title: ` (needs …)` with the missing tools, or nothing. A contributor's machine needs only Node
 * and npm, and a skipped test says why. @throws if CI is `true`, which has to have the tools
 */
export function missingTools(...needed: readonly Tool[]): string {
  const missing = needed.filter((tool) => findProgram(tools[tool]) === null).map((tool) => tools[tool].join(' or '));
  if (missing.length === 0) return '';
  if (process.env['CI'] === 'true')
    throw new Error(`Not on the PATH: ${missing.join(', ')}. CI declares it: run .ci/install`);
  return ` (needs ${missing.join(', ')})`;
}
