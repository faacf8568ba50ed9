import os from 'node:os';
import path from 'node:path';
import { reachableHome } from '@drydock/process';

/** Root's engines are in a folder that the account of every server can enter. */
const machineFolder = path.join(reachableHome, 'engines');

/**
 * Returns the folders that are searched for engines. `npm run engines` writes to the first one. `DRYDOCK_ENGINES_DIR`
 * replaces all of them. Root has only the machine's folder. Another user has a folder in the cache, and also finds what
 * root has fetched.
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

/** Tells whether every server of this process may lose data in a power cut. Tests set DRYDOCK_EPHEMERAL. */
export const isEveryServerEphemeral = (): boolean => process.env['DRYDOCK_EPHEMERAL'] === '1';
