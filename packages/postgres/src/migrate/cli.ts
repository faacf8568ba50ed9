import { createMigration, deployMigrations, findPendingSql } from './migrate';

const usage =
  'usage: cli.js deploy|pending|create SERVICE_DIR [NAME]   (DATABASE_URL in the environment; for pending and create an admin URL)';

/** Always a process of its own: jest's sandbox cannot import the engine's ESM glue, and the engine keeps state in its module. */
async function main(command: string | undefined, serviceDir: string | undefined, name: string | undefined): Promise<unknown> {
  // in the environment, since a command line is readable by every user of the machine
  const databaseUrl = process.env['DATABASE_URL'];
  if (serviceDir === undefined || databaseUrl === undefined) throw new Error(usage);
  if (command === 'deploy') return deployMigrations(serviceDir, databaseUrl);
  if (command === 'pending') return findPendingSql(serviceDir, databaseUrl);
  if (command === 'create' && name !== undefined) return createMigration(serviceDir, databaseUrl, name, new Date());
  throw new Error(usage);
}

main(process.argv[2], process.argv[3], process.argv[4]).then(
  (result) => {
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`, () => process.exit(1));
  },
);
