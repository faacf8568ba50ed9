import { findProgram } from '../find-program';

/** Tools that tests need besides npm's packages. `.ci/install` installs them. One program of each list is enough. */
const tools = {
  redis: ['valkey-server', 'redis-server'],
  acl: ['getfacl'],
  attr: ['getfattr'],
} as const;
export type Tool = keyof typeof tools;

/**
 * Returns the end of a test's title: ` (needs …)` with the missing tools, or ''. A test with missing tools is skipped,
 * so a contributor's machine needs only Node and npm. @throws if CI is `true`, because CI must have the tools
 */
export function missingTools(...needed: readonly Tool[]): string {
  const missing = needed.filter((tool) => findProgram(tools[tool]) === null).map((tool) => tools[tool].join(' or '));
  if (missing.length === 0) return '';
  if (process.env['CI'] === 'true')
    throw new Error(`Not on the PATH: ${missing.join(', ')}. CI declares it: run .ci/install`);
  return ` (needs ${missing.join(', ')})`;
}
