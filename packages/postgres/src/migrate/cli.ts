import { readCommandLine, readVariable } from '@drydock/process';
import { z } from 'zod';
import { createMigration, deployMigrations, findPendingSql } from './migrate';
import { ensureServiceDatabases, loginOf, settleSuperuser } from './service-databases';

const usage = `cli.js deploy|pending|create SERVICE_DIR [NAME]   (DATABASE_URL; for pending and create an admin URL)
       cli.js databases                                  (ADMIN_DATABASE_URL, and DATABASES as [{"name", "password"}])
Settings are environment variables, or files that NAME_FILE names. \
For databases a password may be two, "current,another", while it is rotated.`;

const passwordsSchema = z
  .string()
  .transform((text) => text.split(','))
  .pipe(z.array(z.string().min(16)));
const databasesSchema = z
  .array(z.strictObject({ name: z.string().regex(/^[a-z_]+$/), password: passwordsSchema }))
  .min(1);

/** Creates missing roles and databases, also in a cluster that has data. Sets the passwords of the logins. */
async function createDatabases(): Promise<Record<string, string[]>> {
  const adminUrl = readVariable(process.env, 'ADMIN_DATABASE_URL');
  const databases = readVariable(process.env, 'DATABASES');
  if (adminUrl === undefined || databases === undefined) throw new Error(`usage: ${usage}`);
  const wanted = databasesSchema.parse(JSON.parse(databases));
  await ensureServiceDatabases(
    await settleSuperuser(adminUrl),
    wanted.map(({ name, password }) => ({ name, passwords: password })),
  );
  return Object.fromEntries(wanted.map(({ name, password }) => [name, password.map((each) => loginOf(name, each))]));
}

/**
 * Runs one command. Migrations run in a process of their own, because jest cannot import the engine's ESM module, and
 * the engine keeps state in its process.
 */
async function main(
  command: string | undefined,
  serviceDir: string | undefined,
  name: string | undefined,
): Promise<unknown> {
  if (command === 'databases') return createDatabases();
  // The URL is a variable, because every user of the machine can read a command line.
  const databaseUrl = readVariable(process.env, 'DATABASE_URL');
  if (serviceDir === undefined || databaseUrl === undefined) throw new Error(`usage: ${usage}`);
  if (command === 'deploy') return deployMigrations(serviceDir, databaseUrl);
  if (command === 'pending') return findPendingSql(serviceDir, databaseUrl);
  if (command === 'create' && name !== undefined) return createMigration(serviceDir, databaseUrl, name, new Date());
  throw new Error(`usage: ${usage}`);
}

const [command, serviceDir, name] = readCommandLine(usage, { options: {}, wordsMax: 3 }).positionals;
main(command, serviceDir, name).then(
  (result) => {
    process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`, () => process.exit(1));
  },
);
