import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import { dumpSchema } from '../dump/dump-schema';
import { splitStatements } from '../dump/split-statements';

/** The schema of a real program, as SQL for a client. */
export interface RealSchema {
  /** The name of its Debian package. */
  name: string;
  sql: string;
}

/**
 * Matches COPY from stdin with its rows. psql reads such rows, but a server does not accept them in a statement's text.
 */
const inlineRows = /^COPY [^;]*FROM stdin[^;]*;\n[\s\S]*?^\\\.$/gim;
/** Matches a command of psql. */
const metaCommand = /^\\.*$/gm;
/** Matches statements about plpgsql, which are removed. Every database has it, and the customer does not own it. */
const languageStatement = /^(?:CREATE (?:EXTENSION|LANGUAGE)|COMMENT ON EXTENSION)\b[^;]*\bplpgsql\b[^;]*;/gim;
/** Matches changes of owners, which are removed. The customer owns everything here. */
const ownerStatement = /^ALTER [^;]* OWNER TO [^;]*;/gim;

/** Matches grants to a program's own roles. The role is replaced, because only the grant matters. */
const namedGrant = /^(GRANT\b[^;]*\bTO\s+)\w+(\s*;)/gim;
/** Matches the part of a migration's file that removes the schema again. */
const downMigration = /^-- \d+ down$[\s\S]*?(?=^-- \d+ up$|$(?![\s\S]))/gm;

/** `npm run test:all` uses these small schemas, and `npm run chaos` uses all. */
const inCi = ['gnokii-smsd-pgsql', 'icingadb', 'pdns-backend-pgsql', 'roundcube-core'];

/** The title of the skipped test if there are no schemas. */
export const missingSchema: RealSchema = { name: 'real programs (needs .ci/fetch-schemas)', sql: '' };

/** Lists the schemas that `.ci/fetch-schemas` has downloaded, or none. */
export function listRealSchemas(): RealSchema[] {
  const folder = process.env['DRYDOCK_SCHEMAS'] ?? '/var/cache/drydock-schemas';
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.sql')) : [];
  const schemas = files.map((file) => {
    const sql = readFileSync(path.join(folder, file), 'utf8')
      .replace(inlineRows, '')
      .replace(metaCommand, '')
      .replace(languageStatement, '')
      .replace(ownerStatement, '')
      .replace(namedGrant, '$1PUBLIC$2')
      .replace(downMigration, '');
    return { name: path.basename(file, '.sql'), sql };
  });
  return isChaos ? schemas : schemas.filter(({ name }) => inCi.includes(name));
}

/**
 * Returns a statement in a form that is the same before and after Postgres has read its own output. Postgres moves the
 * cast of a list of varchar to its elements, so such casts are removed. It changes the case of the field of EXTRACT.
 */
export const asReadAgain = (statement: string): string =>
  statement
    .replace(/\('([^']*)'::character varying\)::text/g, "'$1'::character varying")
    .replace(/\((ARRAY\[[^\]]*\])\)::text\[\]/g, '$1')
    .replace(/EXTRACT\([A-Za-z]+ FROM/g, (field) => field.toLowerCase());

/** Returns pg_dump's statements with privileges, sorted by text. `OWNER` replaces the owner's name. */
export async function statementsOf(url: string, owner: string): Promise<string[]> {
  const sections = await Promise.all([
    dumpSchema({ url, section: 'pre-data' }),
    dumpSchema({ url, section: 'post-data' }),
  ]);
  const texts = sections.flatMap(splitStatements).map(({ text }) => text.replace(/^(?:--[^\n]*\n|\s)+/, ''));
  return texts.map((text) => text.replaceAll(`"${owner}"`, owner).replaceAll(owner, 'OWNER')).sort();
}
