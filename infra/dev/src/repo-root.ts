import path from 'node:path';

/** The clone's root, from `infra/dev/src` as from `infra/dev/dist`. */
export const repoRoot = path.resolve(__dirname, '../../..');

/** A path in the clone. */
export const inRepo = (relative: string): string => path.join(repoRoot, relative);
