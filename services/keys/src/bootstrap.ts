// npm run bootstrap -- [--name NAME] [--new-key] [--json]
// Makes the first organisation and its first key directly in the database, because the API mints a key only for a
// caller with a key.
import { text } from '@drydock/contracts/platform/values';
import { runCommand } from '@drydock/service/process';
import { Command } from 'commander';
import { z } from 'zod';
import { bootstrapOrg } from './bootstrap-org';
import { readBootstrapConfig } from './config';
import { openDatabase } from './context/database.store';
import { createKeySecrets } from './secrets/api-key.secret';

const optionsSchema = z.object({
  name: text(200),
  json: z.boolean().default(false),
  newKey: z.boolean().default(false),
});
/**
 * The exit code if the organisation exists already. It differs from the code of a failure, so that a script can
 * continue.
 */
const existsCode = 3;

async function main(): Promise<number> {
  const program = new Command('bootstrap')
    .description('Make the first organisation and its first key')
    .option('--name <name>', 'name of the root organisation', 'Hosting')
    .option('--new-key', 'mint another first key when the organisation is there already')
    .option('--json', 'print JSON')
    .parse();
  const { name, json, newKey } = optionsSchema.parse(program.opts());
  const config = readBootstrapConfig();
  const database = openDatabase(config.DATABASE_URL, { max: 1, applicationName: 'keys-bootstrap' });
  try {
    const made = await bootstrapOrg(database, createKeySecrets(config.SERVICE_SECRET, config.TOKEN_PEPPERS), {
      name,
      newKey,
      now: new Date(),
    });
    if (made === null) {
      const error =
        `There is a root organisation "${name}" already; nothing was changed. ` +
        'Mint keys with POST /v1/api-keys, or pass --new-key if every key of it was lost.';
      console.error(json ? JSON.stringify({ error }) : error);
      return existsCode;
    }
    console.log(
      json
        ? JSON.stringify(made)
        : `organisation  ${made.org_id}\nkey           ${made.key_id}\ntoken         ${made.token}\n` +
            'The token is shown this once.',
    );
    return 0;
  } finally {
    await database.close();
  }
}

runCommand(main);
