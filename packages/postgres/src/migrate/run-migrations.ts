import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Applies a service's migrations in a process of its own. Returns the names of those that were missing. @throws with
 * the engine's message
 */
export async function runMigrations(serviceDir: string, databaseUrl: string): Promise<string[]> {
  const output: unknown = JSON.parse(await runCli(['deploy', serviceDir], databaseUrl));
  return Array.isArray(output) ? output.map(String) : [];
}

/**
 * The SQL that is missing between a service's history and its schema files, or null. Runs in a process of its own.
 * `adminUrl` must be allowed to create databases. @throws with the engine's message
 */
export async function readPendingSql(serviceDir: string, adminUrl: string): Promise<string | null> {
  const output: unknown = JSON.parse(await runCli(['pending', serviceDir], adminUrl));
  return typeof output === 'string' ? output : null;
}

/**
 * Runs the command line tool from the build output, wherever this module itself was loaded from. Returns what it
 * printed.
 */
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
