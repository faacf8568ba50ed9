import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { type Manifest, manifestSchema, type Section } from '@drydock/mysql/dump/manifest';
import mysql from 'mysql2/promise';
import type { MysqlTrialSetup } from './mysql-job-setup';
import { mysqlUrl, quoteName, quoteText, withMysql } from './mysql-session';

const manifestPath = 'manifest.json';

/** Passes the sections on. `manifest` holds the last section once it was read; empty before. */
export function countingSections(sections: AsyncIterable<Section>): {
  sections: AsyncIterable<Section>;
  manifest: () => Manifest;
} {
  let manifest: Manifest = { format: 1, tables: [], findings: [] };
  async function* listen(): AsyncGenerator<Section> {
    for await (const section of sections) {
      if (section.path !== manifestPath) {
        yield section;
        continue;
      }
      const said = await text(section.content);
      manifest = manifestSchema.parse(JSON.parse(said));
      yield { path: section.path, content: once(Buffer.from(said)) };
    }
  }
  return { sections: listen(), manifest: () => manifest };
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

const clientName = 'drydock_client';

/**
 * The first table that a client reads a row from with TLS; null if none has one. Throws if a table should have a row
 * and has none.
 */
export async function readOneRow(
  setup: Pick<MysqlTrialSetup, 'server' | 'port' | 'ca_certificate'>,
  { tables }: Manifest,
): Promise<string | null> {
  const table = tables.find(({ rows }) => rows > 0);
  if (table === undefined) return null;
  const name = `${quoteName(table.schema)}.${quoteName(table.name)}`;
  const password = randomBytes(24).toString('base64url');
  await withMysql(mysqlUrl(setup.server.login), async (admin) => {
    await admin.run(`create user ${clientName}@'%' identified by ${quoteText(password)} require ssl`);
    await admin.run(`grant select on ${name} to ${clientName}@'%'`);
  });
  const ssl = { ca: setup.ca_certificate };
  const client = await mysql.createConnection({ host: '127.0.0.1', port: setup.port, user: clientName, password, ssl });
  client.on('error', () => undefined);
  try {
    const [rows] = await client.query(`select 1 from ${name} limit 1`);
    return Array.isArray(rows) && rows.length === 1 ? name : null;
  } finally {
    client.destroy();
  }
}
