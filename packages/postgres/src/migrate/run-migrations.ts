import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Applies a service's migrations in a process of its own. Returns the names of the applied ones. @throws with the
 * engine's message
 */
export async function runMigrations(serviceDir: string, databaseUrl: string): Promise<string[]> {
  const output: unknown = JSON.parse(await runCli(['deploy', serviceDir], databaseUrl));
  return Array.isArray(output) ? output.map(String) : [];
}

/**
 * Returns the SQL from a service's migrations to its schema files, or null. It runs in a process of its own. `adminUrl`
 * must be allowed to create databases. @throws with the engine's message
 */
export async function readPendingSql(serviceDir: string, adminUrl: string): Promise<string | null> {
  const output: unknown = JSON.parse(await runCli(['pending', serviceDir], adminUrl));
  return typeof output === 'string' ? output : null;
}

/** Runs the compiled command-line tool, because this module may be TypeScript under jest. Returns its output. */
async function runCli(args: readonly string[], databaseUrl: string): Promise<string> {
  const cli = path.resolve(__dirname, '../../dist/migrate/cli.js');
  try {
    const { stdout } = await run(process.execPath, [cli, ...args], {
      env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl },
    });
    return stdout;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    throw new Error(`Migrations (${args.join(' ')}) failed: ${said}`, { cause: error });
  }
}
