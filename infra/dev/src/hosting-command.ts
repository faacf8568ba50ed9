import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Surroundings, serviceEnvironment } from './programs/program';
import { inRepo } from './repo-root';

const run = promisify(execFile);

/** Runs hosting's command for deleted sites as staff would, beside its database. */
export async function hostingCommand(around: Surroundings, verb: 'hold' | 'purge', deletedSiteId: string): Promise<void> {
  const { DATABASE_URL } = serviceEnvironment('hosting', around);
  await run(process.execPath, [inRepo('services/hosting/dist/deleted-sites/command.js'), verb, deletedSiteId], {
    env: { DATABASE_URL, LOG_LEVEL: 'silent' },
  });
}
