// `npm run migrate:new -- SERVICE NAME`: compares a service's Prisma schema with its migrations, and writes the missing
// migration.

import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startPostgres } from '@drydock/postgres';
import { readCommandLine } from '@drydock/process';
import { inRepo } from './dev-config';

const run = promisify(execFile);

async function main(service: string | undefined, name: string | undefined): Promise<void> {
  if (service === undefined || name === undefined) throw new Error(`usage: ${usage}`);
  const serviceDir = inRepo(`services/${service}`);
  if (!fs.existsSync(path.join(serviceDir, 'prisma/schema')))
    throw new Error(`There is no services/${service}/prisma/schema`);
  // Prisma replays the migrations into a shadow database. The server is a temporary one, so that the shadow database is
  // not created beside real data.
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drydock-migrate-'));
  fs.chmodSync(folder, 0o711);
  const server = await startPostgres({ folder, isEphemeral: true });
  try {
    const { stdout } = await run(
      process.execPath,
      [inRepo('packages/postgres/dist/migrate/cli.js'), 'create', serviceDir, name],
      {
        env: { DATABASE_URL: server.adminUrl },
      },
    );
    const made: unknown = JSON.parse(stdout);
    process.stdout.write(
      typeof made === 'string' ? `${path.relative(process.cwd(), made)}\n` : 'The history is up to the schema.\n',
    );
  } finally {
    await server.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

const usage = 'npm run migrate:new -- SERVICE NAME   (hosting add_labels)';
const [service, name] = readCommandLine(usage, { options: {}, wordsMax: 2 }).positionals;
void main(service, name).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
