import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import type { Account } from './through-host';

const corpus = process.env['DRYDOCK_TREES'] ?? '/var/cache/drydock-trees';
const fetched = existsSync(corpus) ? readdirSync(corpus).sort() : [];

/**
 * The files of real programs that `.ci/fetch-trees` has brought, by name. Only chaos runs take all of them; other runs
 * take `locales`.
 */
export const realTrees = isChaos ? fetched : fetched.filter((tree) => tree === 'locales');
/** The end of a message that names what this machine lacks. */
export const missingTree = `${corpus}, which .ci/fetch-trees fills`;

/** Copies the files of a program into a folder, and gives them to the account. */
export function copyTree(name: string, to: string, { uid, gid }: Account): void {
  const { status, stderr } = spawnSync('cp', ['-a', `${path.join(corpus, name)}/.`, to]);
  // An ordinary user may not read all files, so only root must succeed.
  if (status !== 0 && process.getuid?.() === 0) throw new Error(stderr.toString());
  spawnSync('chown', ['-hR', `${uid}:${gid}`, to]);
}
