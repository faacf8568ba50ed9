import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { isChaos } from '@drydock/testing/scope';
import { dumpSchema } from '../dump/dump-schema';
import { splitStatements } from '../dump/split-statements';

/** The schema of a real program, as the statements that a client sends. */
export interface RealSchema {
  /** The version's Debian package. */
  name: string;
  sql: string;
}

/** Rows for psql. No server accepts them inside a statement's text. */
const inlineRows = /^COPY [^;]*FROM stdin[^;]*;\n[\s\S]*?^\\\.$/gim;
/** A line of psql's own. */
const metaCommand = /^\\.*$/gm;
/** Every database has this language, and it belongs to nobody. */
const languageStatement = /^(?:CREATE (?:EXTENSION|LANGUAGE)|COMMENT ON EXTENSION)\b[^;]*\bplpgsql\b[^;]*;/gim;
/** A dump names the owner that it had elsewhere. Here the customer owns everything. */
const ownerStatement = /^ALTER [^;]* OWNER TO [^;]*;/gim;

/** Roles that a program's own script creates for it. Only the grant matters here. */
const namedGrant = /^(GRANT\b[^;]*\bTO\s+)\w+(\s*;)/gim;
/** The part that removes the schema again, in a file with both directions. */
const downMigration = /^-- \d+ down$[\s\S]*?(?=^-- \d+ up$|$(?![\s\S]))/gm;

/** CI uses a few small ones, and `npm run chaos` uses all. */
const inCi = ['gnokii-smsd-pgsql', 'icingadb', 'pdns-backend-pgsql', 'roundcube-core'];

/** The title of a skipped test when there are none. */
export const missingSchema: RealSchema = { name: 'real programs (needs .ci/fetch-schemas)', sql: '' };

/** The schemas that `.ci/fetch-schemas` has fetched. Empty when it was not run. */
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
 * The statement as Postgres shows it after reading it again. Two expressions come back in other words, which mean the
 * same and stay the same from then on. In a list of varchar that is compared with text, the cast of the list becomes a
 * cast of each element. In EXTRACT, a field that was a string becomes a name.
 */
export const asReadAgain = (statement: string): string =>
  statement
    .replace(/\('([^']*)'::character varying\)::text/g, "'$1'::character varying")
    .replace(/\((ARRAY\[[^\]]*\])\)::text\[\]/g, '$1')
    .replace(/EXTRACT\([A-Za-z]+ FROM/g, (field) => field.toLowerCase());

/** The statements of a dump with its privileges, ordered by their text, with the same name for the owner everywhere. */
export async function statementsOf(url: string, owner: string): Promise<string[]> {
  const sections = await Promise.all([
    dumpSchema({ url, section: 'pre-data' }),
    dumpSchema({ url, section: 'post-data' }),
  ]);
  const texts = sections.flatMap(splitStatements).map(({ text }) => text.replace(/^(?:--[^\n]*\n|\s)+/, ''));
  return texts.map((text) => text.replaceAll(`"${owner}"`, owner).replaceAll(owner, 'OWNER')).sort();
}
