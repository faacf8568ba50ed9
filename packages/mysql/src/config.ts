import os from 'node:os';
import path from 'node:path';
import { reachableHome } from '@drydock/process/unprivileged';

/** Root's programs lie where the account of every server can walk to, whatever clone has fetched them. */
const machineFolder = path.join(reachableHome, 'engines');

/**
 * The folders in which programs are looked for. The first is the one that `npm run engines` writes to: `DRYDOCK_ENGINES_DIR`, else root's folder of this machine, or for an
 * ordinary user one in the user's cache. An ordinary user also uses what root has fetched.
 */
export function engineFolders(): string[] {
  const { DRYDOCK_ENGINES_DIR: chosen, XDG_CACHE_HOME: cache } = process.env;
  if (chosen !== undefined && chosen !== '') return [path.resolve(chosen)];
  if (process.getuid?.() === 0) return [machineFolder];
  return [path.join(cache === undefined || cache === '' ? path.join(os.homedir(), '.cache') : cache, 'drydock/engines'), machineFolder];
}

/** Whether this process is a test's, whose servers need not survive a power cut. */
export const isEveryServerEphemeral = (): boolean => process.env['DRYDOCK_EPHEMERAL'] === '1';
