import { deployAlone, wholeScript } from './interrupted';
import { readMigrationFolder, readMigrationList, writeMigration } from './migration-folder';
import { openSchemaEngine } from './schema-engine';

const filters = { externalTables: [], externalEnums: [] };

/**
 * Does the work of `prisma migrate deploy`: applies missing migrations in order, under the engine's advisory lock, and
 * returns their names.
 * Each migration is applied whole or not at all, so that a deployment that was killed or failed is completed by the
 * next one; native ones need `prisma migrate resolve` then. The database's own role is enough. Table
 * `_prisma_migrations` and checksums are the same, so the native CLI can go on from here.
 * @throws with the engine's message when a migration fails or an applied one was changed
 */
export async function deployMigrations(serviceDir: string, databaseUrl: string): Promise<string[]> {
  const folder = readMigrationFolder(serviceDir);
  const migrationsList = readMigrationList(folder.migrationsDir);
  const scripts = new Set(migrationsList.migrationDirectories.map(({ migrationFile }) => migrationFile.content.value));
  const asOne = (script: string): string => (scripts.has(script) ? wholeScript(script) : script);
  return deployAlone(databaseUrl, async () => {
    const engine = await openSchemaEngine(databaseUrl, folder.schemaFiles, asOne);
    const { appliedMigrationNames } = await engine.applyMigrations({ migrationsList, filters });
    return appliedMigrationNames;
  });
}

/**
 * The SQL that would make the migration history equal to the schema files, or null when nothing differs. `adminUrl`
 * must be allowed to create databases, because the history is replayed into a shadow database.
 */
export async function findPendingSql(serviceDir: string, adminUrl: string): Promise<string | null> {
  const folder = readMigrationFolder(serviceDir);
  const list = readMigrationList(folder.migrationsDir);
  const engine = await openSchemaEngine(adminUrl, folder.schemaFiles);
  const { exitCode, stdout } = await engine.diff({
    from: list.lockfile.content === null ? { tag: 'empty' } : { tag: 'migrations', ...list },
    to: { tag: 'schemaDatamodel', files: folder.schemaFiles.map(([path, content]) => ({ path, content })) },
    script: true,
    exitCode: true,
    filters,
  });
  return exitCode === 2 ? stdout : null;
}

/**
 * Does the work of `prisma migrate dev --create-only --name`. Returns the new folder, or null if there is nothing to
 * write.
 */
export async function createMigration(
  serviceDir: string,
  adminUrl: string,
  name: string,
  at: Date,
): Promise<string | null> {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error(`A migration's name is snake_case, not "${name}"`);
  const sql = await findPendingSql(serviceDir, adminUrl);
  return sql === null ? null : writeMigration(readMigrationFolder(serviceDir).migrationsDir, name, sql, at);
}
