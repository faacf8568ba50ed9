import os from 'node:os';
import path from 'node:path';
import { reachableHome } from '@drydock/process';

/** Root's programs are in a folder that the account of every server can enter, whatever clone has fetched them. */
const machineFolder = path.join(reachableHome, 'engines');

/**
 * The folders in which programs are searched. `npm run engines` writes to the first one. That is `DRYDOCK_ENGINES_DIR`,
 * or else root's folder on this machine, or for an ordinary user a folder in the user's cache. An ordinary user also
 * uses what root has fetched.
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

/** Whether this process belongs to a test. The servers of a test need not survive a power cut. */
export const isEveryServerEphemeral = (): boolean => process.env['DRYDOCK_EPHEMERAL'] === '1';
