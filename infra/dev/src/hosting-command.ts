import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Surroundings, serviceEnvironment } from './programs/program';
import { inRepo } from './repo-root';

const run = promisify(execFile);

const triesMax = 10;

/**
 * Runs hosting's command for deleted sites as staff would, beside its database. On a machine that starts everything at once its
 * connection may come too late for its transaction, which has then done nothing and is asked for again.
 */
export async function hostingCommand(around: Surroundings, verb: 'hold' | 'purge', deletedSiteId: string): Promise<void> {
  const { DATABASE_URL } = serviceEnvironment('hosting', around);
  const command = [inRepo('services/hosting/dist/deleted-sites/command.js'), verb, deletedSiteId];
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run(process.execPath, command, { env: { DATABASE_URL, LOG_LEVEL: 'silent' } });
      return;
    } catch (error) {
      if (attempt === triesMax || !String(error).includes('Unable to start a transaction')) throw error;
    }
  }
}
