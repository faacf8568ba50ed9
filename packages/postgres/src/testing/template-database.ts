import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { runMigrations } from '../migrate/service-databases';
import { ownerRole, ownerUrl, readSharedCluster } from './test-cluster';

/**
 * The initial content of a test's database: a service's migrations, or SQL scripts in order. By default the database is
 * empty.
 */
export interface TemplateContent {
  /** The service's folder with `prisma/`. */
  serviceDir?: string;
  sql?: readonly string[];
}

/** The key of a lock with which jest's workers create templates one after the other. */
const templateLock = 7_320_991;

/**
 * Ensures that a template with this content exists, and returns its name, which contains a hash of the content. So a
 * changed migration gets a new template, and equal contents share one.
 */
export async function ensureTemplate(admin: pg.Client, content: TemplateContent): Promise<string> {
  const name = `template_${hashContent(content)}`;
  await admin.query('SELECT pg_advisory_lock($1)', [templateLock]);
  try {
    const { rowCount } = await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (rowCount === 0) await makeTemplate(admin, name, content);
  } finally {
    await admin.query('SELECT pg_advisory_unlock($1)', [templateLock]);
  }
  return name;
}

async function makeTemplate(admin: pg.Client, name: string, content: TemplateContent): Promise<void> {
  const unfinished = `${name}_unfinished`;
  await admin.query(`DROP DATABASE IF EXISTS "${unfinished}" WITH (FORCE)`);
  await admin.query(`CREATE DATABASE "${unfinished}" OWNER "${ownerRole}"`);
  const url = ownerUrl(readSharedCluster(), unfinished);
  if (content.serviceDir !== undefined) await runMigrations(content.serviceDir, url);
  if (content.sql !== undefined) await runScripts(url, content.sql);
  await admin.query(`ALTER DATABASE "${unfinished}" RENAME TO "${name}"`);
}

async function runScripts(url: string, scripts: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const script of scripts) await client.query(script);
  } finally {
    await client.end();
  }
}

function hashContent(content: TemplateContent): string {
  const hash = createHash('sha256');
  for (const script of content.sql ?? []) hash.update(`sql\0${script}\0`);
  if (content.serviceDir !== undefined) hashFolder(hash, path.join(content.serviceDir, 'prisma/migrations'));
  return hash.digest('hex').slice(0, 16);
}

function hashFolder(hash: ReturnType<typeof createHash>, folder: string): void {
  const names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  for (const name of names) {
    const file = path.join(folder, name);
    if (fs.statSync(file).isFile()) hash.update(`${name}\0`).update(fs.readFileSync(file)).update('\0');
  }
}
