import os from 'node:os';
import path from 'node:path';
import { reachableHome } from '@drydock/process';

/** Root's engines are in a folder that the account of every server can enter. */
const machineFolder = path.join(reachableHome, 'engines');

/**
 * Returns the folders that are searched for engines. `npm run engines` writes to the first folder. If
 * `DRYDOCK_ENGINES_DIR` is set, it names the only folder. Otherwise root has one folder, and an ordinary user has a
 * folder in the user's cache and can also use root's engines.
 */
export function engineFolders(): string[] {
  const { DRYDOCK_ENGINES_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  if (chosen !== undefined && chosen !== '') return [path.resolve(chosen)];
  if (process.getuid?.() === 0) return [machineFolder];
  return [
    path.join(cache === undefined || cache === '' ? path.join(os.homedir(), '.cache') : cache, 'drydock/engines'),
    machineFolder,
  ];
}

/** Tells whether a test runs this process. A test's servers need not survive a power cut. */
export const isEveryServerEphemeral = (): boolean => process.env['DRYDOCK_EPHEMERAL'] === '1';
