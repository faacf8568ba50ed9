// Usage: node services/hosting/dist/deleted-sites/command.js hold|release|purge ID. Staff run this command on a machine
// that reaches the database. `hold` lets only staff restore the site, because of abuse. `release` lets its customer
// restore the site again. `purge` starts the removal of the site's data now.
import { parseArgs } from 'node:util';
import { idSchema } from '@drydock/contracts/platform/values';
import { runCommand } from '@drydock/service/process';
import { readCommandConfig } from '../config';
import { openDatabase } from '../context/database.store';
import { staffActions } from './staff-actions';

const usage = `usage: command.js hold ID      only staff can bring it back from now on
       command.js release ID   its customer may bring it back again
       command.js purge ID     its data is removed now, by a worker`;

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const [verb, id, ...more] = positionals;
  const parsed = idSchema.safeParse(id);
  if (!parsed.success || more.length > 0 || (verb !== 'hold' && verb !== 'release' && verb !== 'purge')) {
    console.error(usage);
    return 2;
  }
  const database = openDatabase(readCommandConfig().DATABASE_URL, { max: 1, applicationName: 'hosting-command' });
  try {
    const workflowId = await staffActions(database)[verb](parsed.data);
    console.log(workflowId === undefined ? `${verb}: done` : `${verb}: workflow ${workflowId}`);
    return 0;
  } finally {
    await database.close();
  }
}

runCommand(main);
